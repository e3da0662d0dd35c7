module perfkit/pk

go 1.18
