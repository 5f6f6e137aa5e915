import type { Permit2Settlement } from '@purser/protocol'
import { encodeErrorResult, parseAbi } from 'viem'
import { expect, test } from 'vitest'
import type { Permit2Facts } from '../../../chain/port.ts'
import { wouldSettle } from '../../../chain/reads/permit2.ts'
import { whyNotPermit2 } from './permit2.ts'

const account = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const settlement: Permit2Settlement = {
  transfer: {
    scheme: 'exact',
    spender: account,
    owner: account,
    token: account,
    permitted: 100n,
    nonce: 1n,
    deadline: 2n,
    witness: { to: account, facilitator: undefined, validAfter: 0n },
  },
  amount: 100n,
  signature: '0x',
  permit2612: undefined,
}
const good: Permit2Facts = {
  proxyDeployed: true,
  payerHasCode: false,
  balance: 100n,
  allowance: 100n,
  nonceUsed: false,
  trial: { ok: true },
}
const unexplained = { ok: false, data: null } as const
const errors = parseAbi(['error InvalidContractSignature()', 'error PaymentTooEarly()', 'error Unheard()'])

function reverted(errorName: 'InvalidContractSignature' | 'PaymentTooEarly' | 'Unheard'): Permit2Facts['trial'] {
  return { ok: false, data: encodeErrorResult({ abi: errors, errorName }) }
}

test('a transfer that the chain would settle is accepted; one with a permit needs no allowance', () => {
  expect(whyNotPermit2(good, settlement, { isProven: true })).toBeUndefined()
  expect(whyNotPermit2({ ...good, allowance: 0n }, settlement, { isProven: true })).toBeUndefined()
  expect(whyNotPermit2({ ...good, payerHasCode: true }, settlement, { isProven: false })).toBeUndefined()
})

test('a proven payment is accepted exactly where a node counts as one that would settle it', () => {
  const both = <T>(one: T, other: T) => [one, other]
  for (const proxyDeployed of both(true, false))
    for (const nonceUsed of both(true, false))
      for (const balance of both(99n, 100n))
        for (const allowance of both(0n, 100n))
          for (const trial of both<Permit2Facts['trial']>({ ok: true }, unexplained)) {
            const facts = { ...good, proxyDeployed, nonceUsed, balance, allowance, trial }
            expect(whyNotPermit2(facts, settlement, { isProven: true }) === undefined).toBe(
              wouldSettle(facts, settlement.amount),
            )
          }
})

test('a successful call to an address without a proxy proves nothing', () => {
  expect(whyNotPermit2({ ...good, proxyDeployed: false }, settlement, { isProven: true })).toBe(
    'permit2_proxy_not_deployed',
  )
})

test('a signature that the payer’s key did not make counts for a contract alone', () => {
  expect(whyNotPermit2(good, settlement, { isProven: false })).toBe('invalid_permit2_signature')
})

test('a failed trial is reported by its cause: signature, nonce, proxy, balance, allowance, then the contract’s error', () => {
  const failing: Permit2Facts = { ...good, trial: unexplained }
  const reported: readonly (readonly [Partial<Permit2Facts>, string])[] = [
    [{ nonceUsed: true, balance: 0n }, 'permit2_invalid_nonce'],
    [{ trial: reverted('InvalidContractSignature'), balance: 0n, allowance: 0n }, 'invalid_permit2_signature'],
    [{ balance: 99n, allowance: 0n }, 'permit2_insufficient_balance'],
    [{ allowance: 99n }, 'permit2_allowance_required'],
    [{ trial: reverted('PaymentTooEarly') }, 'permit2_payment_too_early'],
    [{ trial: reverted('Unheard') }, 'permit2_simulation_failed'],
    [{}, 'permit2_simulation_failed'],
  ]
  for (const [facts, reason] of reported)
    expect(whyNotPermit2({ ...failing, ...facts }, settlement, { isProven: true })).toBe(reason)
})

test('a contract that fails without a known error did not accept the signature', () => {
  const facts = { ...good, payerHasCode: true, trial: unexplained }
  expect(whyNotPermit2(facts, settlement, { isProven: false })).toBe('invalid_permit2_signature')
})
