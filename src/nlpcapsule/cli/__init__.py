"""The command line: one small file per command; torch is imported only once there is work to do."""
