import { decodePaymentRequiredHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aPayer, aWorld, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { findFreePort } from '../src/free-port.ts'
import { expressShop, type PaidShop } from './paid-shops.ts'

let chain: DevChain
let world: World
let shop: PaidShop

/** The key's name is a did:web, so the service must listen at the address in its own configuration. */
beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  const port = await findFreePort(0)
  world = await aWorld({ chains: [chain], config: { port, baseUrl: `http://127.0.0.1:${port}` } })
  const org = await world.organisation()
  const wallet = await world.wallet(org)
  shop = await expressShop({ apiKey: org.testKey, baseUrl: world.base, walletId: wallet.id, signOffers: true })
})
afterAll(async () => {
  await shop?.stop()
  await world?.stop()
  await chain?.stop()
})

test('the official verifier finds the key by its name over the web, and accepts the signed offer and the signed receipt', async () => {
  const requested = await fetch(`${shop.url}/report`)
  const required = decodePaymentRequiredHeader(requested.headers.get('payment-required') ?? '')
  const offers = extractOffersFromPaymentRequired(required)
  const [offer] = decodeSignedOffers(offers)
  if (offer === undefined || offer.signedOffer.format !== 'jws') throw new Error('no signed offer')
  expect(await verifyOfferSignatureJWS(offer.signedOffer)).toMatchObject({
    resourceUrl: `${shop.url}/report`,
    amount: '10000',
    network: 'eip155:84532',
  })
  expect(findAcceptsObjectFromSignedOffer(offer, required.accepts)).toBe(required.accepts[0])

  const { account } = await aPayer(chain)
  const client = new x402Client().register('eip155:84532', new ExactEvmScheme(account))
  const paid = await wrapFetchWithPayment(fetch, client)(`${shop.url}/report`)
  expect(paid.status).toBe(200)
  const receipt = extractReceiptFromResponse(paid)
  if (receipt?.format !== 'jws') throw new Error('no signed receipt')
  expect(await verifyReceiptSignatureJWS(receipt)).toMatchObject({ payer: account.address, version: 1 })
  expect(verifyReceiptMatchesOffer(receipt, offer, [account.address])).toBe(true)
})

test('a changed offer is refused by the official verifier', async () => {
  const requested = await fetch(`${shop.url}/report`)
  const required = decodePaymentRequiredHeader(requested.headers.get('payment-required') ?? '')
  const [offer] = extractOffersFromPaymentRequired(required)
  if (offer?.format !== 'jws') throw new Error('no signed offer')
  const [head, body = '', signature] = offer.signature.split('.')
  const cheaper = JSON.stringify({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), amount: '1' })
  const forged = { ...offer, signature: [head, Buffer.from(cheaper).toString('base64url'), signature].join('.') }
  await expect(verifyOfferSignatureJWS(forged)).rejects.toThrow()
})
