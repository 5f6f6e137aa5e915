import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { Challenge, Receipt } from 'mppx'
import { evm, Fetch } from 'mppx/client'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch'
import { txHash } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, stageOf } from './stage.ts'

const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)

/** The official EVM method, with the token details that it does not know for every token. */
const methods = () => evm({ account, maxAmount: '1', decimals: 6, authorization: { name: 'USDC', version: '2' } })

/** A `fetch` that counts its calls; not one of them may carry two payments. */
function counting() {
  const calls: Request[] = []
  const counted: typeof fetch = (input, init) => {
    const request = new Request(input, init)
    calls.push(request.clone())
    return fetch(request)
  }
  return { calls, counted }
}

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  test('official mppx reads each of our offers on its own', async () => {
    const offers = Challenge.fromResponseList(await at.buy({}))
    expect(offers.map(({ method, intent }) => `${method}/${intent}`)).toEqual(['tempo/charge', 'evm/charge'])
    expect(offers[0]?.request).toMatchObject({ amount: '10000', methodDetails: { chainId: 42431 } })
  })

  test('official mppx chooses the offer that it can pay, pays it, and reads our receipt', async () => {
    const { calls, counted } = counting()
    const paying = Fetch.from({ methods: methods(), fetch: counted })
    const response = await paying(`${at.shop.url}/paid`)
    expect(await response.json()).toEqual(goods)
    expect(calls).toHaveLength(2)
    expect(Receipt.fromResponse(response)).toMatchObject({ status: 'success', method: 'evm', reference: txHash })
    expect(at.fake.calls('/verify').map(({ body }) => body.protocol)).toEqual(['mpp'])
  })

  test('official mppx puts its credential where credentialHeader says, beside a key of its own', async () => {
    await at.open({ pay: { credentialHeader: 'Payment-Authorization' } })
    const { calls, counted } = counting()
    const paying = Fetch.from({ methods: methods(), fetch: counted })
    const response = await paying(`${at.shop.url}/paid`, { headers: { authorization: 'Bearer own-key' } })
    expect(await response.json()).toEqual(goods)
    expect(calls[1]?.headers.get('authorization')).toBe('Bearer own-key')
    expect(calls[1]?.headers.get('payment-authorization')).toMatch(/^Payment /)
  })

  test('official @x402/fetch and x402-fetch pay the same 402', async () => {
    const client = new x402Client().register('eip155:84532', new ExactEvmScheme(account))
    const v2 = await wrapFetchWithPayment(fetch, client)(`${at.shop.url}/paid`)
    expect(await v2.json()).toEqual(goods)
    expect(header(v2, 'payment-response')).not.toBe('')
    const v1 = await wrapFetchV1(fetch, account)(`${at.shop.url}/paid`)
    expect(await v1.json()).toEqual(goods)
    expect(header(v1, 'x-payment-response')).not.toBe('')
    expect(at.fake.calls('/verify').map(({ body }) => body.protocol)).toEqual(['x402', 'x402'])
  })
})
