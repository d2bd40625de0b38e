@rem Completes "kubectl gmsa <TAB>": kubectl runs the program of this name on the PATH.
@kubectl-gmsa __complete %*
