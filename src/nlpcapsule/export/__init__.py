"""Networks as ONNX files, which ONNX Runtime scores labels with: no torch, and faster on a CPU."""
