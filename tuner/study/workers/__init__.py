"""The workers of one study: who may decide what is measured next, and who is still alive."""
