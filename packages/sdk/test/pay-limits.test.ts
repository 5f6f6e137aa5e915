import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import {
  ConfirmationDeclinedError,
  createPayingFetch,
  LimitExceededError,
  memoryLedger,
  type PayingFetchOptions,
  type PayLimits,
  SigningError,
} from '../src/pay/index.ts'
import { asks, errorOf, listeningSigner, noon, offer, payTo, seller } from './pay-stage.ts'

const url = 'https://api.seller.test/report'

/** The query contains the price, in millionths of a dollar: `?price=10000` costs a cent. */
const priced = () => seller(({ searchParams }) => asks(offer(searchParams.get('price') ?? '10000')))

function stage(limits: PayLimits, options: Partial<PayingFetchOptions> = {}) {
  const signer = listeningSigner()
  const fetch = priced()
  return { signer, fetch, pay: createPayingFetch({ signer, limits, fetch, now: () => noon, ...options }) }
}

test('a price is paid up to the limit per call exactly, and one unit above it is refused unsigned', async () => {
  const { pay, signer } = stage({ perCall: '0.01' })
  expect(await (await pay(`${url}?price=10000`)).text()).toBe('goods')
  const error = await errorOf(pay(`${url}?price=10001`))
  expect(error).toMatchObject({ limit: 'perCall', limitUsd: '0.01', amountUsd: '0.010001', spentUsd: '0' })
  expect(signer.requested).toHaveLength(1)
})

test('fifty calls at once never sign for more than the day allows', async () => {
  const { pay, signer, fetch } = stage({ perCall: '0.01', perDay: '0.25' })
  const answers = await Promise.allSettled(Array.from({ length: 50 }, () => pay(url)))
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(25)
  expect(signer.requested).toHaveLength(25)
  expect(fetch.paid).toHaveLength(25)
  const refused = answers.find(({ status }) => status === 'rejected')
  expect(refused).toMatchObject({ reason: { limit: 'perDay', limitUsd: '0.25', amountUsd: '0.01', spentUsd: '0.25' } })
})

test('one host cannot use up what is left for the others, its ports count together and with a final dot, and the next UTC day begins at zero', async () => {
  const clock = { now: noon }
  const { pay } = stage({ perCall: '1', perHostPerDay: '0.02', perDay: '0.03' }, { now: () => clock.now })
  await pay('https://one.test/')
  await pay('https://one.test.:8443/')
  expect(await errorOf(pay('https://one.test/'))).toMatchObject({ limit: 'perHostPerDay', spentUsd: '0.02' })
  await pay('https://two.test/')
  expect(await errorOf(pay('https://two.test/'))).toMatchObject({ limit: 'perDay', spentUsd: '0.03' })
  clock.now = Date.parse('2026-11-21T23:59:59.999Z')
  expect(await errorOf(pay('https://two.test/'))).toBeInstanceOf(LimitExceededError)
  clock.now += 1
  expect((await pay('https://one.test/')).status).toBe(200)
})

test('a cheaper offer is taken when the preferred one no longer fits in the day', async () => {
  const fetch = seller(() => asks(offer(50_000n, { maxTimeoutSeconds: 61 }), offer(40_000n, { maxTimeoutSeconds: 62 })))
  const { pay, signer } = stage({ perCall: '1', perDay: '0.09' }, { fetch })
  await pay(url)
  await pay(url)
  expect(signer.requested.map(({ message }) => message.value)).toEqual([40_000n, 40_000n])
  expect(await errorOf(pay(url))).toMatchObject({ limit: 'perDay', amountUsd: '0.04' })
})

test('confirm is called with the price in dollars above the threshold, not at it', async () => {
  const confirm = vi.fn(async () => true)
  const { pay, signer } = stage({ perCall: '1', confirmAbove: '0.05', confirm })
  await pay(`${url}?price=50000`)
  expect(confirm).not.toHaveBeenCalled()
  await pay(`${url}?price=50001`)
  expect(confirm).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({
      host: 'api.seller.test',
      amountUsd: '0.050001',
      token: 'USDC',
      network: 'base-sepolia',
      payTo,
    }),
  )
  expect(signer.requested).toHaveLength(2)
})

test('what was declined is not signed and not counted', async () => {
  const away = () => Promise.reject(new Error('the operator is away'))
  const answers = [() => false, away, async () => true]
  const confirm = () => answers.shift()?.() ?? false
  const { pay, signer } = stage({ perCall: '1', perDay: '0.01', confirmAbove: '0', confirm })
  expect(await errorOf(pay(url))).toBeInstanceOf(ConfirmationDeclinedError)
  expect(await errorOf(pay(url))).toMatchObject({ message: 'the operator is away' })
  expect(signer.requested).toEqual([])
  expect((await pay(url)).status).toBe(200)
})

test('while the caller thinks about one payment, its money is not spent by another', async () => {
  const requested = Promise.withResolvers<boolean>()
  const { pay } = stage({ perCall: '1', perDay: '0.02', confirmAbove: '0.01', confirm: () => requested.promise })
  const slow = pay(`${url}?price=20000`)
  await expect.poll(() => errorOf(pay(url))).toMatchObject({ limit: 'perDay', spentUsd: '0.02' })
  requested.resolve(true)
  expect((await slow).status).toBe(200)
})

test('a signer that fails leaves nothing counted', async () => {
  const broken = { ...listeningSigner(), signTypedData: () => Promise.reject(new Error('locked')) }
  const ledger = memoryLedger()
  const failing = stage({ perCall: '1', perDay: '0.01' }, { signer: broken, ledger })
  const error = await errorOf(failing.pay(url))
  expect(error).toBeInstanceOf(SigningError)
  expect(error).toMatchObject({ code: 'signing-failed', cause: { message: 'locked' } })
  expect((await stage({ perCall: '1', perDay: '0.01' }, { ledger }).pay(url)).status).toBe(200)
})

test('a ledger that cannot be reached refuses the payment unsigned; one that fails afterwards does not cost the goods', async () => {
  const down = () => {
    throw new Error('the ledger is down')
  }
  const { pay, signer } = stage({ perCall: '1' }, { ledger: { ...memoryLedger(), reserve: down } })
  expect(await errorOf(pay(url))).toMatchObject({ message: 'the ledger is down' })
  expect(signer.requested).toEqual([])

  const onFault = vi.fn()
  const late = stage({ perCall: '1' }, { ledger: { ...memoryLedger(), spent: down }, onFault })
  expect(await (await late.pay(url)).text()).toBe('goods')
  expect(onFault).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message: 'the ledger is down' }))
})

test('what is not an option is refused when the fetch is made', () => {
  const { signer } = stage({ perCall: '1' })
  const wrong: Partial<PayingFetchOptions>[] = [
    { limits: { perCall: '1e3' } },
    { limits: { perCall: '1', perDay: '-1' } },
    { limits: { perCall: '1', confirmAbove: '1' } },
    { limits: { perCall: '1', confirm: () => true } },
    { signer: { ...signer, address: '0x1' } },
    {
      tokens: [
        { network: 'base', symbol: 'X', name: 'X', address: signer.address, decimals: 19, eip3009: true, eip712: null },
      ],
    },
  ]
  for (const options of wrong)
    expect(() => createPayingFetch({ signer, limits: { perCall: '1' }, ...options })).toThrow(TypeError)
})

const doing = fc.constantFrom('paid', 'refused', 'failed', 'broken', 'signer-fails', 'declined')
const calls = fc.array(
  fc.record({
    host: fc.constantFrom('a.test', 'b.test', 'c.test'),
    price: fc.integer({ min: 0, max: 120_000 }),
    doing,
    waitsForOthers: fc.boolean(),
  }),
  { maxLength: 40 },
)
const statusOf = new Map([
  ['refused', 402],
  ['failed', 500],
])
const cents = fc.integer({ min: 0, max: 40 }).map((cent) => (cent / 100).toFixed(2))

test('for any calls at once and in turn, what is signed never exceeds a limit, whatever sellers, signer and caller do', async () => {
  await fc.assert(
    fc.asyncProperty(calls, cents, cents, cents, async (sequence, perCall, perHostPerDay, perDay) => {
      const signed: { host: string; value: bigint }[] = []
      const ledger = memoryLedger()
      const running = new Set<Promise<unknown>>()
      for (const { host, price, doing, waitsForOthers } of sequence) {
        if (waitsForOthers) await Promise.all(running)
        const signer = listeningSigner()
        const pay = createPayingFetch({
          signer: {
            address: signer.address,
            signTypedData: async ({ message }) => {
              if (doing === 'signer-fails') throw new Error('locked')
              signed.push({ host, value: BigInt(String(message.value)) })
              return `0x${'11'.repeat(65)}`
            },
          },
          limits: { perCall, perHostPerDay, perDay, confirmAbove: '0', confirm: () => doing !== 'declined' },
          fetch: seller(
            () => asks(offer(BigInt(price))),
            () => {
              if (doing === 'broken') throw new TypeError('reset')
              return new Response('', { status: statusOf.get(doing) ?? 200 })
            },
          ),
          ledger,
          now: () => noon,
        })
        const call = pay(`https://${host}/`).catch(() => {})
        running.add(call)
      }
      await Promise.all(running)
      const spent = (entries: typeof signed) => entries.reduce((sum, { value }) => sum + value, 0n)
      const micro = (usd: string) => BigInt(Math.round(Number(usd) * 100)) * 10_000n
      for (const { value } of signed) expect(value <= micro(perCall)).toBe(true)
      for (const host of ['a.test', 'b.test', 'c.test'])
        expect(spent(signed.filter((entry) => entry.host === host)) <= micro(perHostPerDay)).toBe(true)
      expect(spent(signed) <= micro(perDay)).toBe(true)
    }),
    { numRuns: 150 },
  )
})
