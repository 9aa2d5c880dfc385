"""Operations on cutouts: other formats, stacks, colour pictures."""
