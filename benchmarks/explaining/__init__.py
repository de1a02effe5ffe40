"""Are explanations true? Each study of a drawn server is explained, and held against what the server has."""
