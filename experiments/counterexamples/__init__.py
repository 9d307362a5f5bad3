"""The hunt: groups on which an assignor falls short, each as small as it gets."""
