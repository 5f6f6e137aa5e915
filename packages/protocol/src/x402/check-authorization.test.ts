import { resetAssetContractCache } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { serializeErc6492Signature } from 'viem/utils'
import { expect, test } from 'vitest'
import {
  accepted,
  expected,
  judge,
  must,
  nowSeconds,
  payer,
  paymentV1,
  paymentV2,
  payTo,
  sign,
  stranger,
} from '../../test/signed-payment.ts'
import { bytesToHex, type Hex, hexToBytes, uint256ToBytes } from '../bytes.ts'
import { networkByName, tokenBySymbol } from '../chains.ts'
import { encodeTransferWithAuthorization } from '../evm-abi.ts'
import { requirementsV2 } from './exact-evm.ts'
import type { PaymentPayloadV2 } from './messages.ts'
import { isReason, reasonOfRevert } from './reasons.ts'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

async function forged(change: Partial<PaymentPayloadV2['payload']['authorization']>): Promise<PaymentPayloadV2> {
  const payment = await paymentV2()
  return { ...payment, payload: { ...payment.payload, authorization: { ...payment.payload.authorization, ...change } } }
}

async function withSignature(signature: string): Promise<PaymentPayloadV2> {
  const payment = await paymentV2()
  return { ...payment, payload: { ...payment.payload, signature } }
}

async function withAccepted(change: Partial<PaymentPayloadV2['accepted']>): Promise<PaymentPayloadV2> {
  return { ...(await paymentV2()), accepted: { ...accepted, ...change } }
}

function mirrored(signature: Hex): Hex {
  const bytes = hexToBytes(signature)
  const s = order - BigInt(bytesToHex(bytes.subarray(32, 64)))
  return bytesToHex(Uint8Array.of(...bytes.subarray(0, 32), ...uint256ToBytes(s), bytes[64] === 27 ? 28 : 27))
}

test('an honest payment is taken in both versions, and says what settling it needs', async () => {
  for (const payment of [await paymentV2(), await paymentV1()]) {
    const verdict = judge(payment)
    if (!verdict.ok) throw new Error(verdict.reason)
    expect(verdict).toMatchObject({ payer: payer.address, signatureKind: 'eoa', deployment: undefined })
    expect(verdict.authorization).toMatchObject({ from: payer.address, to: payTo, value: 10_000n })
    expect(encodeTransferWithAuthorization(verdict.authorization, verdict.signature)).toMatch(/^0xe3ee160e/)
  }
})

test('letter case of addresses and nonce changes neither the verdict nor the key under which a payment is remembered', async () => {
  const lower = await forged({ from: lowered(payer.address), to: lowered(payTo) })
  const upper = await forged({ nonce: raised((await paymentV2()).payload.authorization.nonce) })
  const verdicts = [judge(await paymentV2()), judge(lower), judge(upper)]
  for (const verdict of verdicts) expect(verdict).toEqual(verdicts[0])
  expect(verdicts[0]).toMatchObject({ ok: true, signatureKind: 'eoa' })
})

test('no field of a signed payment can be changed without losing the proof', async () => {
  const changes = [
    { from: stranger.address },
    { to: stranger.address },
    { value: '10001' },
    { validAfter: '1740672088' },
    { validBefore: '1740672155' },
    { nonce: `0x${'00'.repeat(32)}` },
  ] as const
  for (const change of changes) {
    const verdict = judge(await forged(change))
    const found = verdict.ok ? verdict.signatureKind : verdict.reason
    expect(['unproven', 'invalid_exact_evm_signature'], JSON.stringify(change)).toContain(found)
  }
})

test('each fault of a payment that was really signed has the official reason', async () => {
  const cases = [
    [await paymentV2({ to: stranger.address }), 'invalid_exact_evm_recipient_mismatch'],
    [await paymentV2({ validBefore: String(nowSeconds + 5) }), 'invalid_exact_evm_payload_authorization_valid_before'],
    [await paymentV2({ validBefore: '0' }), 'invalid_exact_evm_payload_authorization_valid_before'],
    [await paymentV2({ validAfter: String(nowSeconds + 1) }), 'invalid_exact_evm_payload_authorization_valid_after'],
    [await paymentV2({ value: '9999' }), 'invalid_exact_evm_payload_authorization_value_mismatch'],
    [await paymentV2({ value: '10001' }), 'invalid_exact_evm_payload_authorization_value_mismatch'],
    [await paymentV2({ value: '0' }), 'invalid_exact_evm_payload_authorization_value_mismatch'],
    [await withAccepted({ amount: '9999' }), 'invalid_exact_evm_payload_authorization_value_mismatch'],
    [await withAccepted({ amount: '010000' }), 'invalid_exact_evm_payload_authorization_value_mismatch'],
    [await withAccepted({ payTo: stranger.address }), 'invalid_exact_evm_recipient_mismatch'],
    [await withAccepted({ scheme: 'upto' }), 'invalid_exact_evm_scheme'],
    [await withAccepted({ network: 'eip155:8453' }), 'invalid_exact_evm_network_mismatch'],
    [await withAccepted({ network: 'base-sepolia' }), 'invalid_exact_evm_network_mismatch'],
    [await withAccepted({ asset: stranger.address }), 'invalid_payment_requirements'],
    [await withAccepted({ extra: undefined }), 'invalid_exact_evm_missing_eip712_domain'],
    [await withAccepted({ extra: { name: 'USDC' } }), 'invalid_exact_evm_missing_eip712_domain'],
    [await withAccepted({ extra: { name: 'USD Coin', version: '2' } }), 'invalid_exact_evm_token_name_mismatch'],
    [await withAccepted({ extra: { name: 'USDC', version: '1' } }), 'invalid_exact_evm_token_version_mismatch'],
    [await withSignature('0x12'.padEnd(131, '0')), 'invalid_exact_evm_signature'],
    [await withSignature('garbage'), 'invalid_exact_evm_signature'],
    [await withSignature(`0x${'6492'.repeat(16)}`), 'invalid_exact_evm_signature'],
    [{ ...(await paymentV1()), scheme: 'upto' }, 'invalid_exact_evm_scheme'],
    [{ ...(await paymentV1()), network: 'base' }, 'invalid_exact_evm_network_mismatch'],
    [await paymentV1({ value: '9999' }), 'invalid_exact_evm_authorization_value'],
    [await paymentV1({ value: '10001' }), 'invalid_exact_evm_authorization_value'],
  ] as const
  for (const [payment, reason] of cases) {
    expect(judge(payment), reason).toEqual({ ok: false, reason, payer: payer.address })
    expect(isReason(reason)).toBe(true)
  }
})

test('when several things are wrong, the reason is the first one in the official order', async () => {
  const order = [
    { to: stranger.address },
    { validBefore: '1' },
    { validAfter: String(nowSeconds + 100) },
    { value: '1' },
  ] as const
  const reasons = [
    'invalid_exact_evm_recipient_mismatch',
    'invalid_exact_evm_payload_authorization_valid_before',
    'invalid_exact_evm_payload_authorization_valid_after',
    'invalid_exact_evm_payload_authorization_value_mismatch',
  ]
  for (const [first, reason] of reasons.entries()) {
    const payment = await paymentV2(Object.assign({}, ...order.slice(first)))
    expect(judge(payment)).toMatchObject({ reason })
    expect(judge({ ...payment, payload: { ...payment.payload, signature: 'x' } })).toMatchObject({
      reason: 'invalid_exact_evm_signature',
    })
  }
})

test('the last second before a payment is too old and the first in which it is valid are counted', async () => {
  expect(judge(await paymentV2({ validBefore: String(nowSeconds + 6) }))).toMatchObject({ ok: true })
  expect(judge(await paymentV2({ validAfter: String(nowSeconds) }))).toMatchObject({ ok: true })
})

test('both versions take exactly the price, as the official facilitator does', async () => {
  for (const payment of [await paymentV1({ value: '10001' }), await paymentV2({ value: '10001' })])
    expect(judge(payment)).toMatchObject({ ok: false })
})

test('a challenge’s time limit is part of what must have been accepted, when the caller knows it', async () => {
  const payment = await withAccepted({ maxTimeoutSeconds: 600 })
  expect(judge(payment)).toMatchObject({ ok: true })
  expect(judge(payment, { ...expected, maxTimeoutSeconds: 60 })).toMatchObject({
    reason: 'invalid_payment_requirements',
  })
  expect(judge(await paymentV2(), { ...expected, maxTimeoutSeconds: 60 })).toMatchObject({ ok: true })
})

test('65 bytes of another signer are unproven and not invalid, since the payer may be a contract', async () => {
  const { authorization } = (await paymentV2()).payload
  const signature = await sign(authorization, 'USDC', stranger)
  expect(judge(await withSignature(signature))).toMatchObject({
    ok: true,
    signatureKind: 'unproven',
    signature: { kind: 'bytes', signature },
  })
  const odd = `${signature.slice(0, -2)}1f`
  expect(judge(await withSignature(odd))).toMatchObject({
    ok: true,
    signatureKind: 'unproven',
    signature: { kind: 'bytes', signature: odd },
  })
})

test('the payer’s own signature turned over by somebody is refused at once', async () => {
  const { signature } = (await paymentV2()).payload
  expect(judge(await withSignature(mirrored(must(signature as Hex))))).toMatchObject({
    ok: false,
    reason: 'invalid_exact_evm_signature',
  })
})

test('signatures of contract accounts are handed on as they are, those of accounts to come with their deployment', async () => {
  expect(judge(await withSignature('0xaabb'))).toMatchObject({
    ok: true,
    signatureKind: 'contract',
    signature: { kind: 'bytes', signature: '0xaabb' },
  })
  const wrapped = serializeErc6492Signature({ address: stranger.address, data: '0x1234', signature: '0xaabb' })
  expect(judge(await withSignature(wrapped))).toMatchObject({
    ok: true,
    signatureKind: 'eip6492',
    signature: { kind: 'bytes', signature: '0xaabb' },
    deployment: { factory: stranger.address, factoryCalldata: '0x1234' },
  })
})

test('a token without EIP-3009 cannot be paid with, whatever was signed', async () => {
  const ethereum = must(networkByName('ethereum'))
  const usdt = must(tokenBySymbol(ethereum, 'USDT'))
  const wanted = { ...expected, network: ethereum, token: usdt }
  const payment = await withAccepted({ network: 'eip155:1', asset: usdt.address })
  expect(judge(payment, wanted)).toMatchObject({ reason: 'invalid_exact_evm_eip3009_not_supported' })
  expect(judge({ ...(await paymentV1()), network: 'ethereum' }, wanted)).toMatchObject({
    reason: 'invalid_exact_evm_eip3009_not_supported',
  })
})

test('the official facilitator, whose node says yes to everything, gives the same verdict on every mutation', async () => {
  resetAssetContractCache()
  const unused = () => Promise.reject(new Error('not wanted'))
  const facilitator = new ExactEvmScheme({
    getAddresses: () => [stranger.address],
    getCode: ({ address }) => Promise.resolve(address === expected.token.address ? '0x60' : undefined),
    readContract: () => Promise.resolve(undefined),
    verifyTypedData: unused,
    writeContract: unused,
    sendTransaction: unused,
    waitForTransactionReceipt: unused,
  })
  const offer = { ...expected, resource: '', description: '', mimeType: '', maxTimeoutSeconds: 60 }
  const requirements = requirementsV2(offer)
  const now = Math.floor(Date.now() / 1000)
  const window = { validAfter: '0', validBefore: String(now + 600) }
  const signed = await paymentV2(window)
  const tampered = (change: object): PaymentPayloadV2 => ({
    ...signed,
    payload: { ...signed.payload, authorization: { ...signed.payload.authorization, ...change } },
  })
  const payments = [
    signed,
    await paymentV2({ ...window, to: stranger.address }),
    await paymentV2({ ...window, validBefore: String(now - 1) }),
    await paymentV2({ ...window, validAfter: String(now + 300) }),
    await paymentV2({ ...window, value: '1' }),
    await paymentV2({ ...window, value: '10001', to: stranger.address }),
    tampered({ value: '1' }),
    tampered({ validAfter: '5' }),
    tampered({ validBefore: String(now + 700) }),
    tampered({ from: stranger.address }),
    tampered({ to: stranger.address }),
    tampered({ nonce: `0x${'11'.repeat(32)}` }),
    { ...signed, accepted: { ...accepted, scheme: 'upto' } },
    { ...signed, accepted: { ...accepted, network: 'eip155:1' } },
    { ...signed, payload: { ...signed.payload, signature: '0x' } },
    { ...signed, payload: { ...signed.payload, signature: '0x1234' } },
    { ...signed, payload: { ...signed.payload, signature: 'garbage' } },
  ]
  for (const payment of payments) {
    const official = await facilitator.verify(
      JSON.parse(JSON.stringify(payment)),
      JSON.parse(JSON.stringify(requirements)),
    )
    const verdict = judgeAt(payment, now)
    expect(verdict, JSON.stringify(payment)).toBe(official.isValid ? 'valid' : official.invalidReason)
  }
})

test('the words of a token’s revert lead to the reason behind them, and unknown words to the fallback', () => {
  const fallback = 'invalid_exact_evm_transaction_failed'
  expect(reasonOfRevert('FiatTokenV2: authorization is expired', fallback)).toBe(
    'invalid_exact_evm_payload_authorization_valid_before',
  )
  expect(reasonOfRevert('FiatTokenV2: authorization is not yet valid', fallback)).toBe(
    'invalid_exact_evm_payload_authorization_valid_after',
  )
  expect(reasonOfRevert('FiatTokenV2: authorization is used or canceled', fallback)).toBe(
    'invalid_exact_evm_nonce_already_used',
  )
  expect(reasonOfRevert('ERC20: transfer amount exceeds balance', fallback)).toBe(
    'invalid_exact_evm_insufficient_balance',
  )
  expect(reasonOfRevert('FiatTokenV2: invalid signature', fallback)).toBe('invalid_exact_evm_signature')
  expect(reasonOfRevert("ECRecover: invalid signature 's' value", fallback)).toBe('invalid_exact_evm_signature')
  expect(reasonOfRevert('Pausable: paused', fallback)).toBe(fallback)
})

/** Our verdict as the official facilitator would word it for accounts without code: what is not proven here is no signature. */
function judgeAt(payment: PaymentPayloadV2, now: number): string {
  const verdict = judge(payment, expected, now)
  if (!verdict.ok) return verdict.reason
  return verdict.signatureKind === 'eoa' ? 'valid' : 'invalid_exact_evm_signature'
}

function lowered(address: Hex): Hex {
  return `0x${address.slice(2).toLowerCase()}`
}

function raised(hex: Hex): Hex {
  return `0x${hex.slice(2).toUpperCase()}`
}
