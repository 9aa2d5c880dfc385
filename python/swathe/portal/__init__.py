"""The portal: catalogue, jobs and cutouts over HTTP, as REST, VO services and web pages."""
