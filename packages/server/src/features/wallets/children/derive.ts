import { type HdCurve, hdChildAddress } from '@purser/protocol'
import type { DeriveAddress } from '../ports.ts'

class NoChild extends Error {}

/** Derives accounts with this curve. Returns undefined for an invalid sum; any other fault is thrown. */
export function createDeriveAddress(curve: HdCurve): DeriveAddress {
  const telling: HdCurve = {
    ...curve,
    addToPublicKey(publicKey, tweak) {
      const sum = curve.addToPublicKey(publicKey, tweak)
      if (sum === undefined) throw new NoChild()
      return sum
    },
  }
  return (node, index) => {
    try {
      return hdChildAddress(node, index, telling)
    } catch (error) {
      if (error instanceof NoChild) return undefined
      throw error
    }
  }
}
