import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { aHoldStage, aSender, type HoldStage, listed, noSource, type Wallet } from '../../../../test/hold-stage.ts'
import { runAdmin } from '../../../admin/run.ts'
import type { OracleResult, ScreeningReason } from '../../../partners/screening/port.ts'
import { sql } from '../../../platform/db/db.ts'

let stage: HoldStage
let wallet: Wallet

beforeAll(async () => {
  stage = await aHoldStage('live')
})
beforeEach(async () => {
  wallet = await stage.master()
})
afterAll(() => stage?.stop())

const pendingWith = (reason: ScreeningReason, oracle: OracleResult) => ({ result: 'pending', reason, oracle }) as const

test.each([
  { reason: 'list-stale', oracle: 'clean', onHold: 0n },
  { reason: 'oracle-failed', oracle: 'failed', onHold: 0n },
  { reason: 'oracle-not-configured', oracle: 'none', onHold: 0n },
  { reason: 'list-stale', oracle: 'failed', onHold: 9n },
  { reason: 'list-stale', oracle: 'none', onHold: 9n },
  { reason: 'list-stale', oracle: 'unknown', onHold: 9n },
  { reason: 'oracle-unknown', oracle: 'unknown', onHold: 9n },
] as const)(
  'of a live deposit from a sender who is $reason with the oracle $oracle, $onHold of 9 is on hold',
  async (one) => {
    const sender = aSender()
    stage.screening.setResult(sender, pendingWith(one.reason, one.oracle))
    await stage.booked(sender, wallet, 9n)
    expect(await stage.onHold(wallet)).toEqual({ frozen: 0n, unscreened: one.onHold })
    expect(await stage.deposits(wallet)).toMatchObject([{ amlStatus: 'pending', frozen: '0' }])
  },
)

test('a hold ends with the first source that screens the sender, and does not begin again if all sources fail', async () => {
  const sender = aSender()
  stage.screening.setResult(sender, noSource)
  await stage.booked(sender, wallet, 9n)
  await stage.screenWhatIsDue()
  expect((await stage.onHold(wallet)).unscreened).toBe(9n)
  await stage.nowIs(pendingWith('list-stale', 'clean'), sender)
  expect((await stage.onHold(wallet)).unscreened).toBe(0n)
  await stage.nowIs(noSource, sender)
  expect((await stage.onHold(wallet)).unscreened).toBe(0n)
})

test('a sender who is flagged after the hold ended freezes what is left', async () => {
  const sender = aSender()
  stage.screening.setResult(sender, pendingWith('list-stale', 'clean'))
  await stage.booked(sender, wallet, 9n)
  await stage.book({ from: wallet.address, to: aSender(), raw: 4n })
  await stage.nowIs({ result: 'flagged', reason: 'oracle-sanctioned', oracle: 'sanctioned' }, sender)
  expect(await stage.onHold(wallet)).toEqual({ frozen: 5n, unscreened: 0n })
})

const minuteMs = 60_000

async function release(...args: readonly string[]): Promise<[number, string]> {
  const { exitCode, stdout, stderr } = await runAdmin(['admin', 'release-hold', ...args], {
    DATABASE_URL: stage.world.database.url,
  })
  return [exitCode, stdout + stderr]
}

async function aHold(raw: bigint, to = wallet): Promise<`0x${string}`> {
  const sender = aSender()
  stage.screening.setResult(sender, noSource)
  await stage.booked(sender, to, raw)
  return sender
}

async function releases() {
  const { list } = await stage.world.call(stage.key, 'GET', '/organisations/current/audit-log')
  return list.filter(({ action }) => action === 'wallets.holds.release')
}

test('an operator releases one deposit or all of a wallet, each with an audit record, and another wallet keeps its hold', async () => {
  const other = await stage.master()
  const sender = await aHold(3n)
  await aHold(4n)
  await aHold(5n)
  await aHold(6n, other)
  const [first] = await stage.deposits(wallet)
  expect(await release('--deposit', String(first?.id), '--reason', 'seen the invoice')).toEqual([
    0,
    `${first?.id}  1 released from hold\n`,
  ])
  expect((await stage.onHold(wallet)).unscreened).toBe(9n)
  expect((await releases())[0]).toMatchObject({
    target: first?.id,
    actor: { kind: 'operator' },
    details: { reason: 'seen the invoice', deposits: [{ id: first?.id, walletId: wallet.id, amount: '0.000003' }] },
  })
  expect((await release('--wallet', wallet.id))[0]).toBe(0)
  expect([await stage.onHold(wallet), await stage.onHold(other)]).toEqual([
    { frozen: 0n, unscreened: 0n },
    { frozen: 0n, unscreened: 6n },
  ])
  await stage.nowIs(noSource, sender)
  expect((await stage.onHold(wallet)).unscreened, 'a screening without a source leaves it released').toBe(0n)
  expect((await stage.deposits(wallet)).map(({ amlStatus }) => amlStatus)).toEqual(['pending', 'pending', 'pending'])
})

test('frozen money is not released, nor is anything for an unknown id', async () => {
  const sender = await aHold(7n)
  await stage.nowIs(listed, sender)
  expect((await release('--wallet', wallet.id))[0]).toBe(1)
  expect((await stage.onHold(wallet)).frozen).toBe(7n)
  expect((await release('--wallet', (await stage.master()).id))[1]).toContain('nothing is on hold there')
  expect((await release('--deposit', 'wtx_01h455vb4pex5vsknk084sn02q'))[1]).toContain('nothing is on hold there')
  expect([(await release())[0], (await release('--wallet', 'byw_01h455vb4pex5vsknk084sn02q'))[0]]).toEqual([2, 2])
})

test('readiness and metrics report live money on hold without a source, and not a deposit that waits in the queue', async () => {
  const Ready = z.object({ screening: z.object({ liveDeposits: z.string() }) })
  const liveDeposits = async () =>
    Ready.parse(await (await fetch(`${stage.world.base}/readyz`)).json()).screening.liveDeposits
  await stage.db.run(sql`update wallet_transactions set on_hold = false`)
  const sender = await aHold(3n)
  // The result of a readiness check is repeated for half a second.
  const patient = { timeout: 20_000 }
  expect(await liveDeposits()).toBe('free')
  await stage.screenWhatIsDue()
  await expect.poll(liveDeposits, patient).toBe('on-hold')
  const metrics = await (await fetch(`${stage.world.base}/metrics`)).text()
  expect(metrics).toMatch(/^purser_live_deposits_on_hold 0$/m)
  await stage.screenWhatIsDue()
  expect(await (await fetch(`${stage.world.base}/metrics`)).text()).toMatch(/^purser_live_deposits_on_hold 1$/m)
  await stage.nowIs({ result: 'clear', reason: 'clean', oracle: 'clean' }, sender)
  await expect.poll(liveDeposits, patient).toBe('free')
  await aHold(3n)
  stage.clock.forward(6 * minuteMs)
  await expect.poll(liveDeposits, { ...patient, message: 'nothing screens it' }).toBe('on-hold')
})

test('a list of what is on hold has the deposits that are unscreened or frozen in part, and no other', async () => {
  const [clear, unscreened, flagged] = [aSender(), aSender(), aSender()]
  stage.screening.setResult(clear, pendingWith('list-stale', 'clean'))
  stage.screening.setResult(unscreened, noSource)
  stage.screening.setResult(flagged, noSource)
  for (const [sender, raw] of [
    [clear, 2n],
    [unscreened, 3n],
    [flagged, 4n],
    [clear, 5n],
  ] as const)
    await stage.booked(sender, wallet, raw)
  await stage.nowIs(listed, flagged)
  const path = `/wallet-infra/master-wallets/${wallet.id}/transactions`
  const amounts = async (query: string) =>
    (await stage.world.call(stage.key, 'GET', `${path}?${query}`)).list.map(({ rawAmount }) => rawAmount)
  expect(await amounts('onHold=true')).toEqual(['4', '3'])
  expect(await amounts('onHold=true&limit=1&token=USDC')).toEqual(['4'])
  expect(await amounts('onHold=true&direction=out')).toEqual([])
  expect(await amounts('')).toEqual(['5', '4', '3', '2'])
})

test('a deposit whose screening cannot be stored delays no later ones', async () => {
  const [poisoned, other] = [await stage.master(), await stage.master()]
  const [first, second] = [await aHold(3n, poisoned), await aHold(4n, other)]
  await stage.db.run(sql`
    create function refuse_poisoned() returns trigger language plpgsql as $$ begin raise exception 'poisoned'; end $$`)
  await stage.db.run({
    text: `create trigger poisoned before update on wallet_transactions for each row
      when (old.wallet_id = '${poisoned.id}' and new.aml_ticket <> old.aml_ticket) execute function refuse_poisoned()`,
    values: [],
  })
  for (const sender of [first, second]) stage.screening.setResult(sender, pendingWith('list-stale', 'clean'))
  await stage.screenWhatIsDue()
  expect([await stage.onHold(poisoned), await stage.onHold(other)]).toMatchObject([
    { unscreened: 3n },
    { unscreened: 0n },
  ])
  await stage.db.run(sql`drop trigger poisoned on wallet_transactions`)
  await stage.screenWhatIsDue()
  expect((await stage.onHold(poisoned)).unscreened, 'it stayed due').toBe(0n)
})
