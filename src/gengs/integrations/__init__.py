"""What other libraries need in order to use our distributions."""
