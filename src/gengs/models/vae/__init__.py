"""Autoencoders with count or Gaussian latents."""
