import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  aHoldStage,
  aSender,
  clean,
  type HoldStage,
  listed,
  noSource,
  type Wallet,
} from '../../../../test/hold-stage.ts'

let stage: HoldStage

beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

async function aFamily(): Promise<{ readonly master: Wallet; readonly child: Wallet }> {
  const master = await stage.master()
  return { master, child: await stage.child(master) }
}

test.each([true, false])(
  'a listed deposit is frozen when it is booked, whether the list is stale (%s)',
  async (isStale) => {
    stage.screening.isStale = isStale
    const [{ child }, bad] = [await aFamily(), aSender()]
    stage.screening.setResult(bad, listed)
    await stage.booked(bad, child, 5n)
    expect(await stage.onHold(child)).toEqual({ frozen: 5n, unscreened: 0n })
    await stage.booked(aSender(), child, 7n)
    expect(await stage.onHold(child)).toEqual({ frozen: 5n, unscreened: 0n })
    stage.screening.isStale = false
  },
)

test('a deposit whose sender no source can screen is on hold without a time limit', async () => {
  const [{ child }, unknown] = [await aFamily(), aSender()]
  stage.screening.setResult(unknown, noSource)
  await stage.booked(unknown, child, 5n)
  stage.clock.forward(3_600_000)
  await stage.screenWhatIsDue()
  expect(await stage.onHold(child)).toEqual({ frozen: 0n, unscreened: 5n })
})

test('the customer’s own wallet at the address of a master of another chain does not free the master’s listed money', async () => {
  const bad = aSender()
  stage.screening.setResult(bad, listed)
  const { call } = stage.world
  const made = await call(stage.key, 'POST', '/wallet-infra/master-wallets', {
    chain: 'optimism',
    supportedTokens: ['USDC'],
  })
  const master = { id: String(made.body.id), address: made.body.address as Wallet['address'] }
  const own = { address: master.address, chain: 'base', supportedTokens: ['USDC'] }
  expect((await call(stage.key, 'POST', '/wallet-infra/byo-wallets', own)).status).toBe(201)
  await stage.booked(bad, master, 5n)
  expect(await stage.onHold(master)).toEqual({ frozen: 5n, unscreened: 0n })
})

test('money that was swept before its sender was listed is frozen at the master, and later clean money is free', async () => {
  const [{ master, child }, bad] = [await aFamily(), aSender()]
  await stage.booked(bad, child, 5n)
  await stage.booked(child.address, master, 5n)
  await stage.nowIs(listed, bad)
  expect([(await stage.onHold(child)).frozen, (await stage.onHold(master)).frozen]).toEqual([0n, 5n])
  await stage.booked(aSender(), child, 5n)
  await stage.booked(aSender(), master, 3n)
  expect([(await stage.onHold(child)).frozen, (await stage.onHold(master)).frozen]).toEqual([0n, 5n])
})

test('money that the master spent before its sender was listed freezes nothing', async () => {
  const [{ master, child }, bad] = [await aFamily(), aSender()]
  await stage.booked(bad, child, 5n)
  await stage.booked(child.address, master, 5n)
  await stage.book({ from: master.address, to: aSender(), raw: 5n })
  await stage.nowIs(listed, bad)
  await stage.booked(aSender(), child, 5n)
  await stage.booked(aSender(), master, 5n)
  expect([(await stage.onHold(child)).frozen, (await stage.onHold(master)).frozen]).toEqual([0n, 0n])
})

test('a flag and its end are reported once each, also for a deposit that was frozen when it was booked', async () => {
  const [{ child }, bad] = [await aFamily(), aSender()]
  stage.screening.setResult(bad, listed)
  await stage.booked(bad, child, 5n)
  await stage.screenWhatIsDue()
  await stage.screenWhatIsDue()
  const own = (payloads: readonly unknown[]) => payloads.filter((payload) => Object(payload).walletId === child.id)
  expect(own(await stage.events('wallet.flagged'))).toMatchObject([{ walletId: child.id, reason: 'listed' }])
  await stage.nowIs(clean, bad)
  expect(own(await stage.events('wallet.cleared'))).toMatchObject([{ walletId: child.id }])
  expect((await stage.onHold(child)).frozen).toBe(0n)
})

test('a flag of a BYO wallet and its end are events of the wallet, once each', async () => {
  const { id: walletId, address } = await stage.world.wallet(stage.org)
  await stage.nowIs(listed, address)
  await stage.screenWhatIsDue()
  await stage.nowIs(noSource, address)
  await stage.nowIs(clean, address)
  await stage.screenWhatIsDue()
  const own = (payloads: readonly unknown[]) => payloads.filter((payload) => Object(payload).walletId === walletId)
  const at = expect.stringMatching(/^\d{4}-.*Z$/)
  const subject = { walletId, address, transactionId: null }
  expect(own(await stage.events('wallet.flagged'))).toEqual([{ ...subject, reason: 'listed', flaggedAt: at }])
  expect(own(await stage.events('wallet.cleared'))).toEqual([{ ...subject, clearedAt: at }])
})

test('concurrent screenings of one deposit by many processes set and end one flag, and release all that it froze', async () => {
  const [{ master, child }, bad] = [await aFamily(), aSender()]
  await stage.booked(bad, child, 9n)
  await stage.booked(child.address, master, 6n)
  const together = () => Promise.all(Array.from({ length: 6 }, () => stage.screenWhatIsDue()))
  stage.screening.setResult(bad, listed)
  stage.screening.swapList([bad])
  await together()
  expect(await stage.frozen(child, master)).toEqual([3n, 6n])
  stage.screening.setResult(bad, clean)
  stage.screening.swapList([bad])
  await together()
  await stage.screenWhatIsDue()
  expect(await stage.frozen(child, master)).toEqual([0n, 0n])
  const own = (payloads: readonly unknown[]) => payloads.filter((payload) => Object(payload).walletId === child.id)
  expect([own(await stage.events('wallet.flagged')), own(await stage.events('wallet.cleared'))]).toMatchObject([
    [{ address: expect.any(String) }],
    [{ address: expect.any(String) }],
  ])
})
