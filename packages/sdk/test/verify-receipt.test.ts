import { sign } from 'node:crypto'
import { composeJws, type JsonObject, jwsSigningInput, receiptPayload } from '@purser/protocol'
import { expect, test } from 'vitest'
import { verifyReceipt } from '../src/seal/index.ts'
import { aSealer } from './seal-stage.ts'

const service = aSealer()
const { jwks: keys, kid } = service
const facts = {
  resourceUrl: 'https://api.example.com/report',
  network: 'eip155:84532',
  payer: '0x857b06519E91e3A54538791bDbb0E22373e36b66',
  issuedAt: 1_740_672_100,
  transaction: `0x${'ab'.repeat(32)}`,
}

function signed(payload: JsonObject, by = service): string {
  const input = jwsSigningInput({ alg: 'EdDSA', kid: by.kid }, payload)
  return composeJws(input, sign(null, Buffer.from(input), by.privateKey))
}

const receipt = signed(receiptPayload(facts))

test('a receipt of the service holds, and says who paid for what', async () => {
  expect(await verifyReceipt(receipt, { keys })).toEqual({ ok: true, kid, statement: facts })
  const { transaction: _, ...free } = facts
  const statement = { ...free, transaction: '' }
  expect(await verifyReceipt(signed(receiptPayload(free)), { keys })).toEqual({ ok: true, kid, statement })
})

test.each<[string, string, string, { readonly keys: readonly unknown[] }]>([
  ['of another signer', 'key-unknown', signed(receiptPayload(facts), aSealer('evil.example', 'other-1')), keys],
  ['signed by another key of this name', 'signature-invalid', signed(receiptPayload(facts), aSealer()), keys],
  ['with another payer', 'signature-invalid', altered({ payer: '0x0000000000000000000000000000000000000001' }), keys],
  ['without a payer', 'receipt-malformed', signed({ ...receiptPayload(facts), payer: null }), keys],
  ['of another version', 'receipt-malformed', signed({ ...receiptPayload(facts), version: 2 }), keys],
  ['that is no JWS', 'receipt-malformed', 'a.b', keys],
  ['checked without keys', 'keys-unusable', receipt, { keys: [] }],
])('a receipt %s is refused as %s', async (_, fault, text, trusted) => {
  expect(await verifyReceipt(text, { keys: trusted })).toEqual({ ok: false, fault })
})

/** The receipt with another statement and the same signature. */
function altered(change: Partial<typeof facts>): string {
  const input = jwsSigningInput({ alg: 'EdDSA', kid }, receiptPayload({ ...facts, ...change }))
  return `${input}.${receipt.split('.')[2]}`
}
