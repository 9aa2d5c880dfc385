"""Readers that make the chunk index of a file with the format's own library.

They run in a confined process: their input is untrusted. Each module has two functions:

- `describe(file)` returns the bytes of a chunk index, `IndexWriter.to_bytes()`.
- `read(file, name, start, stop)` returns elements of an array, in C order, as bytes of its dtype.
  It serves arrays whose storage is `library`. `start` and `stop` are lists, one number for each
  axis; of readers that `indexing.READERS` calls flat they are numbers of elements in C order.

`file` is a binary file for reading at any position. Readers open nothing else: links to other
files, and filters loaded from a path, are refused by name.
"""
