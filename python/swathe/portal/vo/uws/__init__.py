"""UWS 1.1: jobs of SODA and of TAP, followed in the same way."""
