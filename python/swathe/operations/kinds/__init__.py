"""The operations, one module each; `OPERATION` is the operation of its module."""
