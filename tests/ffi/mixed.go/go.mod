module mixed

go 1.18

require perfkit/pk v0.0.0

replace perfkit/pk => ../../../contrib/go
