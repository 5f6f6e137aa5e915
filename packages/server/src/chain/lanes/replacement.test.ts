import type { Hex } from '@purser/protocol'
import { serializeTransaction } from 'viem/utils'
import { expect, test } from 'vitest'
import { signedGasLimit } from './replacement.ts'

const signature = { r: `0x${'1'.repeat(64)}`, s: `0x${'2'.repeat(64)}`, yParity: 1 } as const
const to = `0x${'ab'.repeat(20)}` as const

test.each([
  ['a call without data', 21_000n, '0x'],
  ['a long call', 100_000_000n, `0x${'7'.repeat(4_000)}`],
  ['a gas limit of one byte', 127n, '0x01'],
  ['a gas limit of one byte above 127', 128n, '0x01'],
] as const)('the gas limit is read from the signed bytes of %s', (_, gas, data) => {
  const fees = { maxFeePerGas: 21_000_000n, maxPriorityFeePerGas: 0n }
  for (const nonce of [0, 5, 300]) {
    const raw: Hex = serializeTransaction({ chainId: 42_161, nonce, to, data, gas, ...fees }, signature)
    expect(signedGasLimit(raw)).toBe(gas)
  }
})
