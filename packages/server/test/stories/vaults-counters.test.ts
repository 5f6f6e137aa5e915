import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formOf, upload } from '../files/uploads.ts'
import type { Org } from '../world.ts'
import { aVaultStage, countersOf, hourMs, streamOf, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

const verbs = [
  'document',
  'document',
  'file',
  'file',
  'unfile',
  'emit',
  'emit',
  'seal',
  'persist',
  'extend',
  'delete',
] as const

type Step =
  | { readonly kind: 'create'; readonly ttl: string }
  | { readonly kind: 'act'; readonly verb: (typeof verbs)[number]; readonly pick: number; readonly size: number }
  | { readonly kind: 'pass'; readonly hours: number }
  | { readonly kind: 'follow' }
  | { readonly kind: 'rebuild' }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('30m', '2h', '7d').map((ttl) => ({ kind: 'create' as const, ttl })) },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('act' as const),
      verb: fc.constantFrom(...verbs),
      pick: fc.nat(9),
      size: fc.nat(3_000),
    }),
  },
  { weight: 2, arbitrary: fc.constantFrom(1, 2).map((hours) => ({ kind: 'pass' as const, hours })) },
  { weight: 2, arbitrary: fc.constant({ kind: 'follow' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'rebuild' as const }) },
)

/** The vaults that a history made, so that its steps use the same ones, deleted or not. */
type Made = string[]

async function take(org: Org, made: Made, next: Step): Promise<void> {
  if (next.kind === 'pass') return stage.pass(next.hours * hourMs)
  if (next.kind === 'follow') return stage.follow()
  if (next.kind === 'create') {
    const { status, body } = await stage.call(org, 'POST', '/vaults', { ttl: next.ttl })
    if (status === 201) made.push(String(body.id))
    return
  }
  if (next.kind === 'rebuild') {
    await stage.call(org, 'POST', '/billing/rebuild-cache')
    return
  }
  const id = made[next.pick % Math.max(1, made.length)]
  if (id !== undefined) await act(org, id, next)
}

async function act(org: Org, id: string, { verb, size }: Extract<Step, { kind: 'act' }>): Promise<void> {
  if (verb === 'file' || verb === 'unfile') return verb === 'file' ? putFile(org, id, size) : dropFile(org, id)
  const bodies = {
    document: { name: 'a', data: { t: 'x'.repeat(size) } },
    emit: size % 2 === 0 ? { event: 'step' } : { event: 'schritt→', payload: { t: 'ü'.repeat(size) } },
    extend: { ttl: '5h' },
    seal: {},
    persist: undefined,
  }
  const { status } =
    verb === 'delete'
      ? await stage.call(org, 'DELETE', `/vaults/${id}`)
      : await stage.call(org, 'POST', `/vaults/${id}/${verb === 'document' ? 'documents' : verb}`, bodies[verb])
  expect([200, 201, 204, 404, 409, 429]).toContain(status)
}

async function putFile(org: Org, id: string, size: number): Promise<void> {
  const body = formOf({ filename: 'a.bin', content: Buffer.alloc(size) })
  const { status } = await upload(stage.world.base, { key: org.testKey, vaultId: id, body })
  expect([201, 404, 409]).toContain(status)
}

async function dropFile(org: Org, id: string): Promise<void> {
  const { files } = (await stage.call(org, 'GET', `/vaults/${id}`)).body
  const [file] = Array.isArray(files) ? files : []
  if (file === undefined) return
  const { status } = await stage.call(org, 'DELETE', `/vaults/${id}/files/${file.id}`)
  expect([204, 404, 409]).toContain(status)
}

/** The counted bytes of a caller's event, by docs/vaults.md. */
function bytesOfEvent({ type, payload }: { readonly type: string; readonly payload: unknown }): number {
  return ['step', 'schritt→'].includes(type)
    ? 128 + Buffer.byteLength(type) + Buffer.byteLength(JSON.stringify(payload))
    : 0
}

/** What the API shows, summed up by the test. */
async function shownOf(org: Org): Promise<Readonly<Record<string, number>>> {
  const vaults = (await stage.call(org, 'GET', '/vaults?limit=500')).list
  let storageBytes = 0
  for (const { id } of vaults) {
    const { documents, files } = (await stage.call(org, 'GET', `/vaults/${id}`)).body
    for (const items of [documents, files])
      if (Array.isArray(items)) for (const { size } of items) storageBytes += Number(size)
    for (const { event } of await streamOf(stage.world, String(id))) storageBytes += bytesOfEvent(event)
  }
  const persistedVaults = vaults.filter(({ persistedAt }) => persistedAt !== null).length
  return { activeVaults: vaults.length - persistedVaults, persistedVaults, storageBytes }
}

test('after any history, in any interleaving, the counters agree with a recount, and after a sweep with what is shown', async () => {
  const lanes = fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(lanes, async (histories) => {
      const org = await stage.world.organisation('pro')
      const made: Made = []
      await Promise.all(
        histories.map(async (history) => {
          for (const next of history) await take(org, made, next)
        }),
      )
      const counted = await countersOf(stage.world, org)
      await stage.call(org, 'POST', '/billing/rebuild-cache')
      expect(await countersOf(stage.world, org)).toEqual(counted)
      const shown = await shownOf(org)
      const { body: quota } = await stage.call(org, 'GET', '/vaults/quota')
      expect(quota).toMatchObject({
        active: { used: shown.activeVaults },
        persisted: { used: shown.persistedVaults },
        storageBytes: { used: shown.storageBytes },
      })
      const { body: usage } = await stage.call(org, 'GET', '/billing/usage')
      expect([usage.activeVaults, usage.persistedVaults, usage.storageBytes]).toEqual([
        quota.active,
        quota.persisted,
        quota.storageBytes,
      ])
      await stage.follow()
      expect(await countersOf(stage.world, org)).toEqual(shown)
    }),
    { numRuns: 40 },
  )
})
