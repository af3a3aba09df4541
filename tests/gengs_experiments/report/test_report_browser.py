"""The page in a real browser, with the network off.

Without Chromium the tests are skipped; where ``GENGS_REQUIRE_BROWSER`` is set, they fail instead.
"""

import os
import shutil
import time

import pytest
from report_folders import HOSTILE, measure_run, partial_study, synthetic_run, topics_run

from gengs_experiments.report.contents import make_contents
from gengs_experiments.report.rendering import render_page

pytestmark = pytest.mark.slow


def programs():
    """Chromium and its driver, or a reason to skip."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    missing = "chromium" if not browser else "chromedriver"
    reason = f"{missing} is not installed (Debian: apt install chromium chromium-driver)"
    if os.environ.get("GENGS_REQUIRE_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A report with every kind of chart and with hostile labels."""
    folder = tmp_path_factory.mktemp("page")
    partial_study(folder / "study")
    partial_study(folder / "hostile", hostile=True)
    synthetic_run(folder / "loose" / "a", labels=("RF", "mid-CDF", HOSTILE))
    measure_run(folder / "loose" / "b", labels=("RLOO(4)", "MidCDF", HOSTILE))
    topics_run(folder / "loose" / "c", words=(HOSTILE, "cell"))
    page = folder / "report.html"
    folders = [folder / "study", folder / "hostile", folder / "loose"]
    page.write_text(render_page(make_contents(folders, title="Everything")), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    binary, driver_path = programs()
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("profile")
    # no sandbox: the tests may run as root, on a page of our own; nothing else is opened
    for argument in (
        *("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run"),
        *("disable-background-networking", f"user-data-dir={profile}"),
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    process = driver.service.process
    try:
        driver.execute_cdp_cmd("Network.enable", {})
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        yield driver
    finally:
        driver.quit()
    assert process.wait(timeout=120) is not None  # the browser is gone


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found


def open_page(browser, file, *, width=1280, scheme="light"):
    # without smooth scrolling, which would move what is to be clicked
    wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser"), browser.get_log("performance")  # forget the page before
    browser.get(file.as_uri())
    for figure in browser.find_elements("css selector", "figure.chart"):
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", figure)
        wait_for(lambda figure=figure: figure.find_elements("css selector", ".main-svg"))
    return browser


def console(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def test_charts_draw_offline_and_nothing_is_said_or_asked(browser, file):
    import json

    open_page(browser, file)
    figures = browser.find_elements("css selector", "figure.chart")
    assert len(figures) == 4
    for figure in figures:
        assert figure.find_elements("css selector", ".scatterlayer .trace")
    assert console(browser) == []
    assert not browser.execute_script("return window.hacked")
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]


def test_a_table_sorts_by_mouse_and_keyboard(browser, file):
    open_page(browser, file)
    table = browser.find_element("css selector", ".runs-table")

    def column(number):
        cells = table.find_elements("css selector", f"tbody tr > *:nth-child({number})")
        return [cell.get_attribute("data-value") for cell in cells]

    heads = table.find_elements("css selector", "thead th")
    run = heads[1].find_element("css selector", "button")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", run)
    run.click()
    up = column(2)
    assert heads[1].get_attribute("aria-sort") == "ascending" and up[0] < up[-1]
    run.send_keys("\ue007")  # Enter
    assert heads[1].get_attribute("aria-sort") == "descending" and column(2)[0] == up[-1]
    heads[4].find_element("css selector", "button").send_keys(" ")
    assert heads[1].get_attribute("aria-sort") == "none"
    times = column(5)
    known = [float(value) for value in times if value is not None]
    assert known == sorted(known)
    assert None not in times[: len(known)]  # what has no value comes last


def test_numbers_sort_as_numbers(browser, file):
    open_page(browser, file)
    button = browser.find_elements("css selector", ".choices")[0].find_elements(
        "css selector", ".choice:not([hidden]) thead th.number button"
    )[0]
    browser.execute_script("arguments[0].click()", button)
    values = browser.execute_script(
        "const rows = [...arguments[0].closest('table').tBodies[0].rows];"
        "return rows.map(row => row.children[1].dataset.value)",
        button,
    )
    known = [float(value) for value in values if value is not None]
    assert len(known) > 1 and known == sorted(known)


def test_a_curve_is_hidden_and_shown(browser, file):
    open_page(browser, file)
    figure = browser.find_element("id", "chart-vae")

    def drawn():
        return len(figure.find_elements("css selector", ".scatterlayer .trace .js-line"))

    def button():
        return next(b for b in figure.find_elements("css selector", ".legend button")
                    if b.text == "GenGS")  # fmt: skip

    before = drawn()
    button().send_keys("\ue007")
    wait_for(lambda: drawn() < before)
    assert button().get_attribute("aria-pressed") == "false"
    assert browser.switch_to.active_element.text == "GenGS"  # the focus stays where it was
    button().click()
    wait_for(lambda: drawn() == before)
    assert console(browser) == []


def test_menus_choose_what_is_drawn(browser, file):
    from selenium.webdriver.support.ui import Select

    open_page(browser, file)
    figure = browser.find_element("id", "chart-synthetic")
    menu = figure.find_elements("css selector", "select")[-1]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", menu)
    Select(menu).select_by_visible_text("variance of a gradient")
    wait_for(
        lambda: figure.find_element("css selector", ".ytitle").text == "variance of a gradient"
    )
    tables = browser.find_element("css selector", ".choices")
    shown = [one.is_displayed() for one in tables.find_elements("css selector", ".choice")]
    assert shown.count(True) == 1
    tables.find_elements("css selector", ".switch label")[1].click()
    shown = [one.is_displayed() for one in tables.find_elements("css selector", ".choice")]
    assert shown.index(True) == 1 and shown.count(True) == 1
    assert console(browser) == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_page_does_not_scroll_sideways(browser, file, width):
    open_page(browser, file, width=width)
    inner, whole = browser.execute_script(
        "document.querySelectorAll('details').forEach(d => { d.open = true; });"
        "return [innerWidth, document.documentElement.scrollWidth]"
    )
    assert inner == width and whole <= width  # a little less, where there is a scroll bar


def luminance(browser, css, element="body"):
    channels = browser.execute_script(
        "const style = getComputedStyle(document.querySelector(arguments[0]));"
        "return style[arguments[1]].match(/[\\d.]+/g)",
        element,
        css,
    )
    return sum(float(c) * w for c, w in zip(channels[:3], (0.2126, 0.7152, 0.0722), strict=True))


def test_light_and_dark(browser, file):
    open_page(browser, file, scheme="dark")
    assert luminance(browser, "backgroundColor") < 40 < 200 < luminance(browser, "color")
    assert luminance(browser, "fill", ".xtitle") > 200  # Plotly's colours too
    button = browser.find_element("id", "theme")
    browser.execute_script("scrollTo(0, 0)")
    button.click()
    assert button.text == "Theme: light"
    wait_for(lambda: luminance(browser, "fill", ".xtitle") < 60)
    assert luminance(browser, "backgroundColor") > 220
    button.click(), button.click()
    assert button.text == "Theme: auto" and luminance(browser, "backgroundColor") < 40
    open_page(browser, file, scheme="light")
    assert luminance(browser, "backgroundColor") > 220 and console(browser) == []
