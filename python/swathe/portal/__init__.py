"""The portal: catalogue, jobs and cutouts by HTTP, for programs, viewers and people."""
