"""What is made of cuts: other formats, stacks, pictures in colour."""
