import { readManifest, verifySeal } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunningServer } from '../../src/boot.ts'
import { type Answer, codeOf, countByStatus, type Org, request } from '../world.ts'
import {
  aVaultStage,
  countersOf,
  ed25519,
  hourMs,
  publishedKeys,
  reportOf,
  streamOf,
  type VaultStage,
} from './vaults-stage.ts'

let stage: VaultStage
let other: { readonly base: string; readonly server: RunningServer }

beforeAll(async () => {
  stage = await aVaultStage()
  other = await stage.world.another()
})
afterAll(() => stage.world.stop())

/** Sends through either process, in turn. */
function post(org: Org, path: string, body: unknown, turn: number): Promise<Answer> {
  const base = turn % 2 === 0 ? stage.world.base : other.base
  return request(base, { key: org.testKey, method: 'POST', path, body })
}

test('with a hundred writers on two processes and one sealer, the seal covers exactly what was acknowledged', async () => {
  const org = await stage.world.organisation()
  const keys = await publishedKeys(stage.world)
  for (const sealAfter of [0, 10, 50, 90]) {
    const id = await stage.vault(org)
    const acknowledged: string[] = []
    const write = async (turn: number): Promise<Answer> => {
      const answer = await post(org, `/vaults/${id}/documents`, { name: `n${turn}`, data: { turn } }, turn)
      if (answer.status === 201) acknowledged.push(String(answer.body.id))
      return answer
    }
    const writers = Array.from({ length: 100 }, (_, turn) => turn)
    const early = writers.slice(0, sealAfter).map(write)
    const sealed = post(org, `/vaults/${id}/seal`, {}, 1)
    const answers = await Promise.all([...early, ...writers.slice(sealAfter).map(write)])
    expect((await sealed).status).toBe(200)
    expect(answers.filter(({ status }) => status !== 201).map(codeOf)).toEqual(
      Array.from({ length: 100 - acknowledged.length }, () => 'vault-sealed'),
    )
    const { body: proof } = await stage.call(org, 'GET', `/vaults/${id}/proof`)
    expect(await verifySeal(proof, ed25519, keys)).toMatchObject({ ok: true })
    const read = readManifest(proof.manifest)
    const items = 'value' in read ? read.value.items.map((item) => item.id) : []
    expect(items).toEqual([...acknowledged].sort())
    const stream = await streamOf(stage.world, id)
    expect(stream.map(({ sequence }) => sequence)).toEqual(stream.map((_, index) => index + 1))
    expect(
      stream
        .slice(1, -1)
        .map(({ event }) => event.payload.documentId)
        .sort(),
    ).toEqual([...acknowledged].sort())
    expect(stream.at(-1)?.event.type).toBe('vault.sealed')
  }
})

test('of 200 vaults created at once on two processes, a quota of 50 allows exactly 50', async () => {
  const org = await stage.world.organisation('pro')
  const answers = await Promise.all(Array.from({ length: 200 }, (_, turn) => post(org, '/vaults', {}, turn)))
  expect(countByStatus(answers)).toEqual({ 201: 50, 429: 150 })
  expect((await stage.call(org, 'GET', '/vaults?limit=500')).list).toHaveLength(50)
  expect(await countersOf(stage.world, org)).toMatchObject({ activeVaults: 50 })
})

test('of 60 vaults persisted at once, a quota of 20 allows exactly 20, and the others stay active', async () => {
  const org = await stage.world.organisation('pro')
  const ids = await Promise.all(Array.from({ length: 50 }, () => stage.vault(org)))
  const answers = await Promise.all(ids.map((id, turn) => post(org, `/vaults/${id}/persist`, undefined, turn)))
  expect(countByStatus(answers)).toEqual({ 200: 20, 429: 30 })
  expect(await countersOf(stage.world, org)).toMatchObject({ activeVaults: 30, persistedVaults: 20 })
})

test('events that two processes append at once have one order without a gap, in which time never goes back', async () => {
  const org = await stage.world.organisation()
  const id = await stage.vault(org)
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, turn) =>
      post(org, `/vaults/${id}/emit`, { event: 'step', payload: { turn } }, turn),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 201: 100 })
  const stream = await streamOf(stage.world, id)
  expect(stream.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 101 }, (_, index) => index + 1))
  expect(new Set(stream.map(({ event }) => event.eventId)).size).toBe(101)
  const acknowledged = answers.map(({ body }) => body.eventId).sort()
  expect(
    stream
      .slice(1)
      .map(({ event }) => event.eventId)
      .sort(),
  ).toEqual(acknowledged)
  const times = stream.map(({ event }) => event.timestamp)
  expect(times).toEqual([...times].sort())
})

// A sealed vault's stream order cannot detect a second event.
test.each(['active', 'sealed'])(
  'two processes that sweep at once publish and delete every %s vault once',
  async (status) => {
    const org = await stage.world.organisation()
    const ids = await Promise.all(Array.from({ length: 80 }, () => stage.vault(org, { ttl: '2h' })))
    if (status === 'sealed') await Promise.all(ids.map((id) => stage.call(org, 'POST', `/vaults/${id}/seal`, {})))
    const followBoth = () =>
      Promise.all([0, 1, 0, 1].map((turn) => stage.follow(turn === 0 ? stage.world.server : other.server)))
    const vaultsReported = async (type: string) =>
      (await reportOf(stage.world, org)).filter((event) => event.type === type).map(({ payload }) => payload.vaultId)
    stage.pass(hourMs)
    await followBoth()
    await followBoth()
    expect((await vaultsReported('vault.expiring')).sort()).toEqual([...ids].sort())
    stage.pass(hourMs)
    await followBoth()
    await followBoth()
    expect((await vaultsReported('vault.expired')).sort()).toEqual([...ids].sort())
    expect(await countersOf(stage.world, org)).toEqual({ activeVaults: 0, persistedVaults: 0, storageBytes: 0 })
  },
)

test('a vault that is extended, persisted, sealed or deleted while it is swept is either kept or gone, never both', async () => {
  const org = await stage.world.organisation()
  const acts = ['extend', 'persist', 'seal', 'delete'] as const
  const ids = await Promise.all(Array.from({ length: 40 }, () => stage.vault(org, { ttl: '2h' })))
  stage.pass(2 * hourMs - 1)
  await stage.follow()
  const act = (id: string, turn: number) => {
    const verb = acts[turn % acts.length]
    return verb === 'delete'
      ? stage.call(org, 'DELETE', `/vaults/${id}`)
      : post(org, `/vaults/${id}/${verb}`, verb === 'extend' ? { ttl: '9h' } : undefined, turn)
  }
  const early = ids.slice(0, 20).map(act)
  await Promise.race(early)
  const late = ids.slice(20).map((id, index) => act(id, index))
  stage.pass(1)
  const sweeps = [stage.follow(), stage.follow(other.server)]
  const answers = await Promise.all([...early, ...late])
  await Promise.all(sweeps)
  await stage.follow()
  const reported = await reportOf(stage.world, org)
  for (const [turn, id] of ids.entries()) {
    const expired = reported.filter(({ type, payload }) => type === 'vault.expired' && payload.vaultId === id).length
    const found = (await stage.call(org, 'GET', `/vaults/${id}`)).status
    const done = (answers[turn]?.status ?? 0) < 300
    const keeps = acts[turn % acts.length] === 'extend' || acts[turn % acts.length] === 'persist'
    const deletes = acts[turn % acts.length] === 'delete'
    expect([turn, found, expired]).toEqual([turn, done && keeps ? 200 : 404, done && (keeps || deletes) ? 0 : 1])
  }
})

test('a running deployment sweeps by itself', async () => {
  const own = await aVaultStage('all')
  try {
    const org = await own.world.organisation('pro')
    await own.vault(org, { ttl: '1h' })
    own.pass(hourMs)
    // both are published at one instant of the stage's clock, and webhooks' fan-out moves the rows: in any order
    const types = async () => (await reportOf(own.world, org)).map(({ type }) => type).toSorted()
    await expect.poll(types, { timeout: 90_000 }).toEqual(['vault.expired', 'vault.expiring'])
  } finally {
    await own.world.stop()
  }
})
