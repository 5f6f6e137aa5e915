import { expect, test } from 'vitest'
import { offerPayload, offersExtension, receiptExtension, receiptPayload } from './offer-receipt.ts'

const requirements = {
  scheme: 'exact',
  network: 'eip155:84532',
  amount: '10000',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  payTo: '0x2096a5a50f7A3C8E2aB4a1E2b8d0b1D9fD25b6aF',
  maxTimeoutSeconds: 300,
  extra: { name: 'USDC', version: '2' },
}

test('an offer names the resource and every term of the payment, and nothing else', () => {
  expect(offerPayload({ resourceUrl: 'https://a.example/x', requirements, validUntil: 1_700_000_000 })).toEqual({
    version: 1,
    resourceUrl: 'https://a.example/x',
    scheme: 'exact',
    network: 'eip155:84532',
    asset: requirements.asset,
    payTo: requirements.payTo,
    amount: '10000',
    validUntil: 1_700_000_000,
  })
})

test('a receipt without a transaction has no member for it, since JCS would sign a null', () => {
  const facts = { resourceUrl: 'https://a.example/x', network: 'eip155:84532', payer: '0xabc', issuedAt: 1 }
  expect(Object.keys(receiptPayload(facts))).not.toContain('transaction')
  expect(receiptPayload({ ...facts, transaction: '0x1' })).toMatchObject({ transaction: '0x1' })
})

test('each offer says which of the ways to pay it signs', () => {
  expect(offersExtension(['a.b.c', 'd.e.f'])).toMatchObject({
    info: {
      offers: [
        { format: 'jws', acceptIndex: 0, signature: 'a.b.c' },
        { format: 'jws', acceptIndex: 1, signature: 'd.e.f' },
      ],
    },
  })
  expect(receiptExtension('a.b.c')).toMatchObject({ info: { receipt: { format: 'jws', signature: 'a.b.c' } } })
})
