import { expect, test, vi } from 'vitest'
import { createPayingFetch, memoryLedger, type PayingFetchOptions, PurchaseError } from '../src/pay/index.ts'
import { mpp, tempoChallenge } from './offers-stage.ts'
import { asks, errorOf, listeningSigner, noon, offer, seller } from './pay-stage.ts'

const url = 'https://api.seller.test/report'

function stage(options: Partial<PayingFetchOptions> = {}) {
  const signer = listeningSigner()
  const fetch = seller(() => asks(offer('10000')))
  const ledger = memoryLedger()
  const limits = { perCall: '1', perDay: '0.05' }
  const pay = createPayingFetch({ signer, limits, ledger, fetch, now: () => noon, ...options })
  return { signer, fetch, ledger, pay }
}

test('a repeat of a purchase sends the credential of the first, without a signature and without an unpaid request', async () => {
  const { pay, signer, fetch, ledger } = stage()
  const calls = vi.fn(fetch)
  const again = stage({ fetch: calls, ledger, signer })
  await pay(url, { purchase: 'report' })
  expect(await (await again.pay(url, { purchase: 'report' })).text()).toBe('goods')
  expect(signer.requested).toHaveLength(1)
  expect(fetch.paid).toHaveLength(2)
  expect(new Set(fetch.paid).size).toBe(1)
  expect(calls).toHaveBeenCalledOnce()
  await pay(url, { purchase: 'another report' })
  await pay(url)
  await pay(url)
  expect(new Set(fetch.paid).size).toBe(4)
})

test('a credential is on record before it is sent, and what was not answered is repeated as it is', async () => {
  const ledger = memoryLedger()
  const unfinished: unknown[] = []
  const paid = seller(
    () => asks(offer('10000')),
    async () => {
      unfinished.push(...(await ledger.unfinished()))
      throw new TypeError('reset')
    },
  )
  const { pay, signer } = stage({ ledger, fetch: paid })
  expect(await errorOf(pay(url, { purchase: 'report' }))).toMatchObject({ code: 'payment-outcome-unknown' })
  const [credential] = paid.paid
  const entry = { purchase: 'report', state: 'signed', payment: { url, amountUsd: '0.01' } }
  expect(unfinished).toMatchObject([{ ...entry, credential: { header: 'PAYMENT-SIGNATURE', value: credential } }])
  const better = stage({ ledger })
  expect((await better.pay(url, { purchase: 'report' })).status).toBe(200)
  expect(better.fetch.paid).toEqual([credential])
  expect([signer.requested.length, better.signer.requested.length]).toEqual([1, 0])
  expect(await ledger.find('report')).toMatchObject({ state: 'spent' })
})

test('a purchase is refused for another URL, and its credential is not sent there', async () => {
  const { pay, fetch } = stage()
  await pay(url, { purchase: 'report' })
  const error = await errorOf(pay('https://other.test/report', { purchase: 'report' }))
  expect(error).toBeInstanceOf(PurchaseError)
  expect(error).toMatchObject({ code: 'purchase-mismatch', entry: { purchase: 'report' } })
  expect(fetch.paid).toHaveLength(1)
})

test('a purchase that was reserved and not signed is not signed by another call until it is released', async () => {
  const confirmed = Promise.withResolvers<boolean>()
  const limits = { perCall: '1', confirmAbove: '0', confirm: () => confirmed.promise }
  const { pay, ledger, signer, fetch } = stage({ limits })
  const slow = pay(url, { purchase: 'report' })
  await expect.poll(() => ledger.find('report')).toBeDefined()
  const error = await errorOf(pay(url, { purchase: 'report' }))
  expect(error).toMatchObject({ code: 'purchase-unfinished', entry: { state: 'reserved' } })
  if (!(error instanceof PurchaseError)) throw error
  await ledger.release(error.entry.id)
  confirmed.resolve(true)
  expect(await errorOf(slow)).toMatchObject({
    message: `The reservation ${error.entry.id} was released, so its payment is not sent.`,
  })
  expect(signer.requested).toHaveLength(1)
  expect(fetch.paid).toEqual([])
  expect((await pay(url, { purchase: 'report' })).status).toBe(200)
})

test('a credential that cannot be recorded is not sent, and its amount is free again', async () => {
  const ledger = memoryLedger()
  const { pay, fetch } = stage({ ledger: { ...ledger, signed: () => Promise.reject(new Error('disk full')) } })
  expect(await errorOf(pay(url, { purchase: 'report' }))).toMatchObject({ message: 'disk full' })
  expect(fetch.paid).toEqual([])
  expect(await ledger.unfinished()).toEqual([])
})

test('money that moved while it could not be recorded is reported with the credential to send', async () => {
  const ledger = memoryLedger()
  const sent = seller(() => mpp(tempoChallenge('10000', { supportedModes: ['push'] })))
  const signer = { ...listeningSigner(), sendTransaction: async () => `0x${'ab'.repeat(32)}` as const }
  const { pay } = stage({
    signer,
    fetch: sent,
    ledger: { ...ledger, signed: () => Promise.reject(new Error('disk full')) },
  })
  const error = await errorOf(pay(url, { purchase: 'report' }))
  expect(error).toMatchObject({ code: 'payment-outcome-unknown', credential: { header: 'Authorization' } })
  expect(sent.paid).toEqual([])
  expect(await ledger.find('report')).toMatchObject({ state: 'reserved' })
})

test.each(['', 7, 'x'.repeat(201)])(
  'the name %j of a purchase is refused before anything is sent',
  async (purchase) => {
    const { pay, fetch } = stage()
    expect(await errorOf(Reflect.apply(pay, undefined, [url, { purchase }]))).toBeInstanceOf(TypeError)
    expect(fetch.paid).toEqual([])
  },
)

test('with a managed wallet the name of the purchase is the Idempotency-Key of the payment', async () => {
  const wallets = { pay: vi.fn(() => Promise.reject(new Error('seen'))) }
  const fetch = seller(() => asks(offer('10000')))
  const pay = createPayingFetch({ wallet: { id: 'mwt_1', wallets }, limits: { perCall: '1' }, fetch })
  expect(await errorOf(pay(url, { purchase: 'report' }))).toMatchObject({ message: 'seen' })
  const challenge = expect.objectContaining({ status: 402, headers: asks(offer('10000')) })
  expect(wallets.pay).toHaveBeenCalledExactlyOnceWith(
    { fromWalletId: 'mwt_1', challenge, maxAmount: '1' },
    { idempotencyKey: 'report' },
  )
})
