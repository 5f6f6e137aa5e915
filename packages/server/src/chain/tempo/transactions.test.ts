import type { Hex } from '@purser/protocol'
import { privateKeyToAccount } from 'viem/accounts'
import { Transaction } from 'viem/tempo'
import { beforeAll, expect, test } from 'vitest'
import { aSigner } from '../../../test/lane-stage.ts'
import { createSigner } from '../../custody/signer.ts'
import type { TempoTransactions } from '../port.ts'
import { createSignatures, type Signatures } from '../signatures/signatures.ts'
import { createTempoTransactions } from './transactions.ts'

let signatures: Signatures
let tempo: TempoTransactions
const key: Hex = `0x${'42'.repeat(32)}`
const account = privateKeyToAccount(key)
const token = '0x20C0000000000000000000000000000000000000'

beforeAll(async () => {
  signatures = await createSignatures()
  tempo = createTempoTransactions(signatures)
})

const fields = {
  type: 'tempo',
  chainId: 42_431,
  calls: [{ to: token, data: '0x95777d59' }],
  nonceKey: 2n ** 256n - 1n,
  nonce: 0,
  validBefore: 1_800_000_000,
  gas: 500_000n,
  maxFeePerGas: 20_000_000_000n,
  maxPriorityFeePerGas: 1n,
} as const

function signed(more: Readonly<Record<string, unknown>> = {}): Promise<Hex> {
  return account.signTransaction({ ...fields, from: account.address, ...more }, { serializer: Transaction.serialize })
}

test('a transaction is decoded with the sender recovered from its signature, and encoded as the chain hashes it', async () => {
  const raw = await signed({ feeToken: token })
  const decoded = await tempo.decode(raw)
  if (!decoded.ok) throw new Error(decoded.fault)
  const { transaction } = decoded
  expect(transaction).toMatchObject({
    raw,
    sender: account.address.toLowerCase(),
    chainId: 42_431,
    calls: [{ to: token.toLowerCase(), value: 0n, data: '0x95777d59' }],
    nonceKey: 2n ** 256n - 1n,
    validBefore: 1_800_000_000n,
    validAfter: undefined,
    gasLimit: 500_000n,
    maxFeePerGas: 20_000_000_000n,
    maxPriorityFeePerGas: 1n,
    feePaidBy: 'sender',
  })
  expect(transaction.hash).toMatch(/^0x[0-9a-f]{64}$/)
})

test('a sponsored transaction is decoded from both encodings, and only the sponsor can complete it', async () => {
  const sponsor = await aSigner()
  const handOver = await tempo.decode(await signed({ feePayer: true }))
  if (!handOver.ok) throw new Error(handOver.fault)
  expect(handOver.transaction).toMatchObject({ feePaidBy: 'sponsor', hash: undefined })
  const again = await tempo.decode(handOver.transaction.raw)
  expect(again).toEqual(handOver)
  const first = await sponsor.signTempoFeePayer(handOver.transaction, token)
  expect(await sponsor.signTempoFeePayer(handOver.transaction, token)).toEqual(first)
  expect(await tempo.decode(first.raw)).toMatchObject({ ok: false })
})

test('an account cannot sponsor itself or sign for a fee that the sender pays', async () => {
  const own = await createSigner(async () => Uint8Array.from(Buffer.from(key.slice(2), 'hex')), signatures)
  const other = await aSigner()
  const handOver = await tempo.decode(await signed({ feePayer: true }))
  const final = await tempo.decode(await signed({ feeToken: token }))
  if (!handOver.ok || !final.ok) throw new Error('not read')
  await expect(own.signTempoFeePayer(handOver.transaction, token)).rejects.toThrow('cannot sponsor itself')
  await expect(other.signTempoFeePayer(final.transaction, token)).rejects.toThrow('does not need a sponsor')
})

test('a sponsor request whose sender differs from the signer is refused', async () => {
  const raw = await signed({ feePayer: true })
  const forged = raw.replace(account.address.slice(2).toLowerCase(), '11'.repeat(20))
  expect(forged).not.toBe(raw)
  expect(await tempo.decode(`0x${forged.slice(2)}`)).toEqual({
    ok: false,
    fault: 'the signature does not match the sender',
  })
})

test('a transaction with an access list, and one without a signature, are refused', async () => {
  const accessList = [{ address: token, storageKeys: [] }] as const
  const unsigned = await Transaction.serialize({ ...fields, feeToken: token })
  const faults = [await tempo.decode(await signed({ accessList })), await tempo.decode(unsigned)]
  expect(faults).toEqual([
    { ok: false, fault: 'the transaction has an access list' },
    { ok: false, fault: 'the transaction is not signed' },
  ])
})

test('decoding never throws; a changed byte leads to another sender, a fault, or the same transaction', async () => {
  const raw = await signed({ feeToken: token })
  const bytes = Buffer.from(raw.slice(2), 'hex')
  for (let at = 0; at < bytes.length; at++) {
    const cut = await tempo.decode(`0x${bytes.subarray(0, at).toString('hex')}`)
    expect([at, cut.ok]).toEqual([at, false])
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 0x01
    const decoded = await tempo.decode(`0x${changed.toString('hex')}`)
    if (decoded.ok && decoded.transaction.sender === account.address.toLowerCase())
      expect([at, decoded.transaction.raw]).toEqual([at, raw])
  }
})

test.each(['0x', '0x76', '0x78', '0x76c0', `0x76${'c1'.repeat(8_000)}`, `0x76f9ffff${'00'.repeat(100)}`] as const)(
  'malformed bytes %.12s are rejected',
  async (raw) => {
    expect((await tempo.decode(raw)).ok).toBe(false)
  },
)

test('a transaction above 8 KiB is rejected without decoding', async () => {
  expect(await tempo.decode(`0x76${'00'.repeat(8_192)}`)).toEqual({
    ok: false,
    fault: 'the transaction is longer than 8192 bytes',
  })
})

test('the second form of a signature, with a high s, is refused', async () => {
  const raw = await signed({ feeToken: token })
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const s = BigInt(`0x${raw.slice(-66, -2)}`)
  const v = raw.endsWith('1b') ? '1c' : '1b'
  const other = `${raw.slice(2, -66)}${(order - s).toString(16).padStart(64, '0')}${v}`
  expect(await tempo.decode(`0x${other}`)).toEqual({
    ok: false,
    fault: 'the signature is not from an ordinary account',
  })
})
