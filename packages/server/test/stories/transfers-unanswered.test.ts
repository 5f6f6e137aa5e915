import { tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { transferRecurring } from '../../src/features/transfers/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { bindTasks } from '../../src/platform/work/runner.ts'
import { endEveryService, type Service, serveEnv, startService } from '../crash/service.ts'
import {
  aMaster,
  aTransferStage,
  bodyFrom,
  eventsOf,
  hasEnded,
  type Managed,
  mineUntilEnded,
  path,
  patient,
  send,
  type TransferStage,
} from '../transfer-stage.ts'
import { request } from '../world.ts'

let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
afterAll(async () => {
  await endEveryService()
  await stage?.stop()
})

/** A process that answers requests and waits long for a block, on the same database. */
function aDoomedProcess(): Promise<Service> {
  const { database, config } = stage.world
  const secret = config.keyEncryption
  const env = serveEnv(database.url, {
    RPC_URL_BASE_SEPOLIA: stage.node.url,
    ROLE: 'api',
    TRANSFER_WAIT_MS: '30000',
    KEY_ENCRYPTION_KEY: 'base64' in secret ? secret.base64 : '',
    FILES_DIR: 'directory' in config.files ? config.files.directory : '',
  })
  return startService(env)
}

async function transferFrom({ id }: Managed): Promise<string> {
  const row = await stage.world.database.db.maybeOne(
    z.object({ id: z.string() }),
    sql`
    select s.transfer_id as id from transfer_steps s join chain_transactions t on t.id = s.transaction_id join transfers f on f.id = s.transfer_id
    where f.wallet_id = ${id} and t.last_broadcast_at is not null`,
  )
  return row?.id ?? ''
}

/** Requests transfers from a process that is killed while it waits for their block; returns their ids. */
async function dieWaiting(masters: readonly Managed[], bodies: readonly object[]): Promise<readonly string[]> {
  const doomed = await aDoomedProcess()
  await stage.chain.setAutomine(false)
  const requested = bodies.map((body, n) =>
    request(doomed.base, {
      key: stage.key,
      method: 'POST',
      path,
      body,
      headers: { 'idempotency-key': `unanswered-${n}` },
    }).then(
      () => 'answered',
      () => 'lost',
    ),
  )
  await expect
    .poll(async () => (await Promise.all(masters.map(transferFrom))).every((id) => id !== ''), patient)
    .toBe(true)
  expect(await doomed.end('SIGKILL')).toBe('SIGKILL')
  expect(await Promise.all(requested)).toEqual(bodies.map(() => 'lost'))
  return Promise.all(masters.map(transferFrom))
}

/** Runs the job as two concurrent workers. */
async function publishAtTwoWorkers(): Promise<void> {
  const workers = [stage.world.server.deps, stage.hasty.server.deps, stage.world.server.deps]
  const jobs = workers
    .flatMap((deps) => bindTasks(deps, transferRecurring))
    .filter(({ name }) => name === 'transfers.publish-unreported')
  await Promise.all(jobs.map((job) => job.run()))
  expect(jobs).toHaveLength(3)
}

test('transfers whose process died before it could answer are published once each, after the longest request wait, by any number of workers', async () => {
  const masters = [await aMaster(stage), await aMaster(stage), await aMaster(stage)]
  const bodies = masters.map((master) => bodyFrom(master))
  const answered = await send(stage, bodyFrom(await aMaster(stage)))
  const [went = '', reverted = '', requested = ''] = await dieWaiting(masters, bodies)
  const token = stage.dev.tokens.USDC ?? '0x'
  await stage.chain.request({
    method: 'anvil_dealERC20' as never,
    params: [masters[1]?.address, token, '0x0'] as never,
  })
  for (const id of [went, reverted, requested]) await mineUntilEnded(stage, id)
  await stage.chain.setAutomine(true)
  const reported = () => Promise.all([went, reverted, requested].map((id) => eventsOf(stage, id)))

  const repeated = {
    key: stage.key,
    method: 'POST',
    path,
    body: bodies[2],
    headers: { 'idempotency-key': 'unanswered-2' },
  }
  const again = await request(stage.world.base, repeated)
  expect([again.status, again.body.id, again.body.status]).toEqual([201, requested, 'confirmed'])
  await publishAtTwoWorkers()
  expect(await reported(), 'a request may still wait').toEqual([[], [], []])
  stage.clock.forward(121_000)
  await publishAtTwoWorkers()
  await publishAtTwoWorkers()
  expect(await reported(), 'repeated requests were answered').toEqual([['transfer.completed'], ['transfer.failed'], []])
  expect(await eventsOf(stage, String(answered.body.id))).toEqual([])

  const late = { ...repeated, body: bodies[0], headers: { 'idempotency-key': 'unanswered-0' } }
  expect((await request(stage.world.base, late)).body).toMatchObject({ id: went, status: 'confirmed' })
  expect(await reported()).toEqual([['transfer.completed'], ['transfer.failed'], []])
  const moved = bodies.map(({ toAddress }) => tokenBalance(stage.dev, 'USDC', toAddress))
  expect(await Promise.all(moved)).toEqual([2_500_000n, 0n, 2_500_000n])
  expect(await hasEnded(stage, went)).toBe(true)
})
