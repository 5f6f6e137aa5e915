import { type Hex, selectorOf, zeroAddress } from '@purser/protocol'
import { pad } from 'viem'
import { lifiDiamond } from '../src/partners/routing/lifi-contracts.ts'
import { relayDepository } from '../src/partners/routing/relay.ts'
import vectors from '../src/partners/routing/vectors/partner-calls.json' with { type: 'json' }
import { other } from './lifi-verdicts.ts'
import { exchange } from './partner-calls.ts'
import { endOn, receiver, sender, stranger } from './routes.ts'

/** A seeded pseudorandom sequence (mulberry32). */
export function sequenceFrom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const planted: readonly string[] = [
  ...[stranger, receiver, sender, other, lifiDiamond, relayDepository, exchange, zeroAddress].map((one) =>
    pad(one).slice(2).toLowerCase(),
  ),
  ...[endOn('base', 'USDC'), endOn('ethereum', 'USDT')].map(({ token }) => pad(token.address).slice(2).toLowerCase()),
  ...[
    0n,
    1n,
    6n,
    32n,
    64n,
    96n,
    192n,
    1_000n,
    2_000n,
    9_899_999n,
    10_000_000n,
    10_000_001n,
    2n ** 255n,
    1n << 160n,
  ].map((one) => one.toString(16).padStart(64, '0')),
]

const selectors: readonly string[] = [
  ...Object.values(vectors.selectors),
  ...Object.values(vectors.relayDeposits),
  ...['approve(address,uint256)', 'increaseAllowance(address,uint256)', 'transfer(address,uint256)'].map(selectorOf),
  ...['depositForBurn(uint256,uint32,bytes32,address,bytes32,uint256,uint32)'].map(selectorOf),
]

/** One change of a call: of a nibble, of a word, of the length, or of the order. */
function mutated(data: Hex, next: (below: number) => number): Hex {
  const body = data.slice(10)
  const count = body.length / 64
  const at = next(count) * 64
  const word = planted[next(planted.length)] ?? ''
  const from = next(count) * 64
  switch (next(9)) {
    case 0: {
      const nibble = next(data.length - 2) + 2
      return `${data.slice(0, nibble)}${next(16).toString(16)}${data.slice(nibble + 1)}` as Hex
    }
    case 1:
      return `${data.slice(0, 10)}${body.slice(0, at)}${word}${body.slice(at + 64)}` as Hex
    case 2:
      return `${data.slice(0, 10)}${body.slice(0, at)}${word}${body.slice(at)}` as Hex
    case 3:
      return `${data.slice(0, 10)}${body.slice(0, at)}${body.slice(at + 64)}` as Hex
    case 4:
      return `${data.slice(0, 10)}${body.slice(0, at)}${body.slice(from, from + 64)}${body.slice(at + 64)}` as Hex
    case 5:
      return `${data}${word.slice(0, 2 * next(33))}` as Hex
    case 6:
      return data.slice(0, data.length - 2 * (1 + next(64))) as Hex
    case 7: {
      const value =
        (BigInt(`0x0${body.slice(at, at + 64)}`) + BigInt([1, 31, 32, 64, -1, -32][next(6)] ?? 1)) & (2n ** 256n - 1n)
      return `${data.slice(0, 10)}${body.slice(0, at)}${value.toString(16).padStart(64, '0')}${body.slice(at + 64)}` as Hex
    }
    default:
      return `${selectors[next(selectors.length)]}${body}` as Hex
  }
}

/** The call data after one to three random changes; often invalid, and sometimes unchanged. */
export function mutatedSome(data: Hex, next: (below: number) => number): Hex {
  let changed = data
  for (let change = next(3); change >= 0; change--) changed = mutated(changed, next)
  return changed
}
