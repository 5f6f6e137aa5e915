import { uint256Max, zeroAddress } from '@purser/protocol'
import fc from 'fast-check'
import { encodeFunctionData, erc20Abi, parseAbi } from 'viem'
import { expect, test } from 'vitest'
import { endOn, receiver, requestFor, sender, stranger } from '../../../test/routes.ts'
import { encodeApprove } from '../../platform/contract-calls.ts'
import { type CallMeaning, type GuardReason, leastOf, whyNotSigned } from './guard.ts'
import { lifiDiamond } from './lifi-contracts.ts'
import type { PlannedCall, RouteRequest } from './port.ts'

const request = requestFor(endOn('base', 'USDC'), endOn('optimism', 'USDC'), 100n)
const { token } = request.from
const meant: CallMeaning = {
  spends: { token: token.address, rawAmount: 100n },
  arrives: { chainId: 10, token: request.to.token.address, recipient: receiver, rawMin: 99n },
  refundTo: sender,
  changes: [],
}
const approval: PlannedCall = { chainId: 8_453, to: token.address, value: 0n, data: encodeApprove(lifiDiamond, 100n) }
const send: PlannedCall = { chainId: 8_453, to: lifiDiamond, value: 0n, data: '0x12345678' }

function verdict(
  calls: readonly PlannedCall[],
  changes: { readonly meaning?: CallMeaning | undefined; readonly request?: RouteRequest } = {},
): GuardReason | undefined {
  const meaning = 'meaning' in changes ? changes.meaning : meant
  const rules = { targets: [lifiDiamond], read: () => meaning, rawOutMin: 99n }
  return whyNotSigned(calls, changes.request ?? request, rules)
}

test('an exact approval and one decoded call are signed; so is the call without an approval', () => {
  expect(verdict([approval, send])).toBeUndefined()
  expect(verdict([send])).toBeUndefined()
})

test('the approval is encoded exactly as by viem', () => {
  expect(approval.data).toBe(encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [lifiDiamond, 100n] }))
})

const onToken = (data: `0x${string}`): PlannedCall => ({ ...approval, data })
const otherAbi = parseAbi([
  'function increaseAllowance(address spender, uint256 added)',
  'function transferFrom(address from, address to, uint256 value)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
])
const zeros = `0x${'00'.repeat(32)}` as const

test.each<readonly [string, readonly PlannedCall[], GuardReason]>([
  ['nothing', [], 'no-call'],
  ['an approval and no call', [approval], 'no-call'],
  ['two approvals', [approval, approval, send], 'too-many-calls'],
  ['two calls', [send, send], 'too-many-calls'],
  ['a call on another chain', [{ ...send, chainId: 1 }], 'wrong-chain'],
  ['an approval on another chain', [{ ...approval, chainId: 1 }, send], 'wrong-chain'],
  ['a call to another account', [{ ...send, to: stranger }], 'target-not-listed'],
  ['one unit more', [onToken(encodeApprove(lifiDiamond, 101n)), send], 'approval-not-exact'],
  ['one unit less', [onToken(encodeApprove(lifiDiamond, 99n)), send], 'approval-not-exact'],
  ['an approval without end', [onToken(encodeApprove(lifiDiamond, uint256Max)), send], 'approval-not-exact'],
  ['an approval to another account', [onToken(encodeApprove(stranger, 100n)), send], 'approval-to-other-spender'],
  ['an approval with a tail', [onToken(`${approval.data}00`), send], 'approval-not-exact'],
  ['an approval with coin', [{ ...approval, value: 1n }, send], 'approval-not-exact'],
  ['a transfer in place of an approval', [onToken(`0xa9059cbb${approval.data.slice(10)}`), send], 'approval-not-exact'],
  [
    'a raised allowance',
    [
      onToken(encodeFunctionData({ abi: otherAbi, functionName: 'increaseAllowance', args: [lifiDiamond, 100n] })),
      send,
    ],
    'approval-not-exact',
  ],
  [
    'a permit',
    [
      onToken(
        encodeFunctionData({
          abi: otherAbi,
          functionName: 'permit',
          args: [stranger, stranger, 100n, 0n, 27, zeros, zeros],
        }),
      ),
      send,
    ],
    'approval-not-exact',
  ],
  ['coin with tokens', [{ ...send, value: 1n }], 'value-differs'],
])('%s is not signed', (_, calls, reason) => {
  expect(verdict(calls)).toBe(reason)
})

const arriving = (changes: Partial<CallMeaning['arrives']>) => ({ ...meant, arrives: { ...meant.arrives, ...changes } })

test.each<readonly [CallMeaning | undefined, GuardReason]>([
  [undefined, 'call-not-understood'],
  [arriving({ recipient: stranger }), 'recipient-differs'],
  [{ ...meant, refundTo: stranger }, 'refund-differs'],
  [{ ...meant, spends: { token: token.address, rawAmount: 101n } }, 'amount-differs'],
  [{ ...meant, spends: { token: stranger, rawAmount: 100n } }, 'amount-differs'],
  [arriving({ rawMin: 98n }), 'minimum-too-low'],
  [arriving({ chainId: 1 }), 'destination-differs'],
  [arriving({ token: stranger }), 'token-differs'],
])('bytes that mean %o are not signed', (meaning, reason) => {
  expect(verdict([approval, send], { meaning })).toBe(reason)
})

test('for the native coin the call value is exactly the amount', () => {
  const native = requestFor(endOn('base', 'native'), request.to, 100n)
  const meaning = { ...meant, spends: { token: zeroAddress, rawAmount: 100n } }
  for (const value of [0n, 99n, 101n])
    expect(verdict([{ ...send, value }], { meaning, request: native })).toBe('value-differs')
  expect(verdict([{ ...send, value: 100n }], { meaning, request: native })).toBeUndefined()
})

test('for any calls from a partner, signed calls never spend more than the amount', () => {
  const addresses = fc.constantFrom(token.address, lifiDiamond, stranger, receiver)
  const calls = fc.array(
    fc.record({
      chainId: fc.constantFrom(8_453, 1),
      to: addresses,
      value: fc.constantFrom(0n, 1n, 100n),
      data: fc.oneof(
        fc.tuple(addresses, fc.bigInt(0n, uint256Max)).map(([spender, amount]) => encodeApprove(spender, amount)),
        fc.tuple(addresses, fc.constant(100n)).map(([spender, amount]) => encodeApprove(spender, amount)),
        fc.constant<`0x${string}`>('0x12345678'),
      ),
    }),
    { maxLength: 4 },
  )
  fc.assert(
    fc.property(calls, (planned) => {
      if (verdict(planned) !== undefined) return
      expect(planned.every(({ chainId, value }) => chainId === 8_453 && value === 0n)).toBe(true)
      const [last, ...before] = [...planned].reverse()
      expect(planned.filter(({ to }) => to === lifiDiamond)).toHaveLength(1)
      expect(planned.length).toBeLessThanOrEqual(2)
      for (const call of [last, ...before]) {
        expect([token.address, lifiDiamond]).toContain(call?.to)
        if (call?.to === token.address) expect(call.data).toBe(approval.data)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('the minimum amount is rounded up', () => {
  expect(leastOf(1_000_000n, 50)).toBe(995_000n)
  expect(leastOf(999n, 50)).toBe(995n)
  expect(leastOf(1n, 50)).toBe(1n)
  fc.assert(
    fc.property(fc.bigInt(0n, uint256Max), fc.nat(10_000), (rawOut, bps) => {
      const least = leastOf(rawOut, bps)
      expect(least * 10_000n).toBeGreaterThanOrEqual(rawOut * BigInt(10_000 - bps))
      expect(least).toBeLessThanOrEqual(rawOut)
    }),
  )
})
