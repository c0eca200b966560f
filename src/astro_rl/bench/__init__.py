"""The paper's tables as experiment matrices: cells, a runner that resumes, and tables rebuilt from raw records."""
