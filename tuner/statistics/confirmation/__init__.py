"""How many pairs prove a gain, what pairs say, and what became of it in the robustness check."""
