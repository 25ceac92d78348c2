package network

import "math/big"

// Size returns the number of addresses in the pool.
func (p Pool) Size() *big.Int {
	start, end := p.Start.As16(), p.End.As16()
	n := new(big.Int).Sub(new(big.Int).SetBytes(end[:]), new(big.Int).SetBytes(start[:]))
	return n.Add(n, big.NewInt(1))
}

// Capacity returns the number of addresses in all allocation pools of the subnet.
func (s Subnet) Capacity() *big.Int {
	all := new(big.Int)
	for _, p := range s.Pools {
		all.Add(all, p.Size())
	}
	return all
}
