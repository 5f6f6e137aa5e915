import type { Address, Hex } from '@purser/protocol'
import { expect, test } from 'vitest'
import { nodesOf } from '../../../test/deposits/fake-chain.ts'
import { isProblem } from '../../platform/errors.ts'
import { tryOne } from '../reads/call-trials.ts'
import { createPaymentReads } from '../reads/payment-reads.ts'
import { trySending } from '../reads/try-sending.ts'
import type { Rpc, RpcCall } from './rpc.ts'

const account: Address = '0x00000000000000000000000000000000000a11ce'
const call = { from: account, to: account, data: '0x', value: 0n, gasLimit: 21_000n } as const
/** A word that is zero. */
const word: Hex = `0x${'0'.repeat(64)}`
const head = { number: 1n, timestampSeconds: 1n, baseFee: 1n }

/** A node that returns this error for each call. */
function failing(message: string): Rpc {
  const unused = () => Promise.reject(new Error('unused'))
  return {
    batch: async (calls) => calls.map(() => ({ ok: false, code: -32_000, message, data: undefined })),
    call: unused,
    result: unused,
    onOneNode: unused,
  }
}

test.each([
  ['execution reverted', 'the call'],
  ['VM execution error.', 'the call'],
  ['Reverted', 'the call'],
  ['out of gas', 'the call'],
  ['gas required exceeds allowance (21000)', 'the call'],
  ['EVM error ReentrancySentryOOG', 'the call'],
  ['intrinsic gas too low', 'the call'],
  ['invalid opcode: INVALID', 'the call'],
  ['invalid jump destination', 'the call'],
  ['insufficient funds for gas * price + value', 'the balance'],
  ['transfer value exceeds balance of sender', 'the balance'],
  ['execution aborted (timeout = 5s)', 'the node'],
  ['execution timeout', 'the node'],
  ['header not found', 'the node'],
  ['', 'the node'],
])('an error "%s" is a fault of %s, whichever read returns it', async (message, fault) => {
  const tried = await tryOne(failing(message), call).catch((error: unknown) => {
    if (isProblem(error, 'chain-unavailable')) return undefined
    throw error
  })
  expect(tried).toEqual(fault === 'the node' ? undefined : { ok: false, reason: null })
  // The sender of a settlement may have too little coin for the moment, which does not decide about the call.
  expect(await trySending(failing(message), call, head)).toBe(fault !== 'the call')
})

test('a transaction that one of two nodes refuses is neither taken nor refused', async () => {
  const taking: Rpc = { ...failing(''), batch: async (calls) => calls.map(() => ({ ok: true, result: '0x' })) }
  const nodes = [taking, failing('execution reverted')]
  const reads = createPaymentReads({ ...taking, ...nodesOf(nodes) }, async () => head)
  expect(await reads.trySending(call).catch(outcomeOf)).toBe('unavailable')
})

test.each([
  ['over rate limit', 'unavailable'],
  ['header not found', 'unavailable'],
  ['execution reverted', 'refused'],
])('an error "%s" of the trial alone leaves a payment %s', async (message, expected) => {
  const isTrial = ({ params: [sent] }: RpcCall) => 'from' in Object(sent) || Object(sent).data?.startsWith('0xcf092995')
  const rpc: Rpc = {
    ...failing(message),
    batch: async (calls) =>
      calls.map((one) =>
        isTrial(one)
          ? { ok: false, code: -32_016, message, data: undefined }
          : { ok: true, result: one.method === 'eth_getCode' ? '0x60' : word },
      ),
  }
  const reads = createPaymentReads({ ...rpc, ...nodesOf([rpc]) }, () => Promise.reject())
  const authorization = { from: account, to: account, value: 0n, validAfter: 0n, validBefore: 9n, nonce: word }
  const transfer = { scheme: 'exact', spender: account, owner: account, token: account, permitted: 0n } as const
  const witness = { to: account, facilitator: undefined, validAfter: 0n }
  const signature = '0xabcd'
  const outcomes = await Promise.all([
    reads
      .inspectAuthorization({
        token: account,
        authorization,
        signature: { kind: 'bytes', signature },
        untrusted: true,
      })
      .then(({ simulation }) => simulation.ok, outcomeOf),
    reads
      .inspectPermit2({
        settlement: {
          transfer: { ...transfer, nonce: 1n, deadline: 9n, witness },
          amount: 0n,
          signature,
          permit2612: undefined,
        },
        settler: account,
      })
      .then(({ trial }) => trial.ok, outcomeOf),
  ])
  expect(outcomes).toEqual(expected === 'refused' ? [false, false] : ['unavailable', 'unavailable'])
})

function outcomeOf(error: unknown): 'unavailable' {
  if (isProblem(error, 'chain-unavailable')) return 'unavailable'
  throw error
}
