import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type World } from './world.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
const files = ['deploy/grafana/purser.json', 'deploy/prometheus/purser.rules.yaml']

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world?.stop())

/** The names of metrics in a text; the parts of a histogram count as the histogram. */
function metricsIn(text: string): readonly string[] {
  const names = text.match(/\bpurser_[a-z_]+/g) ?? []
  return [...new Set(names.map((name) => name.replace(/_(bucket|count|sum)$/, '')))]
}

test.each(files)('each metric that %s names is written by the service and is in the manual', (file) => {
  const written = globSync('packages/server/src/**/*.ts', { cwd: root })
    .flatMap((source) => read(source).match(/'purser_[a-z_]+'/g) ?? [])
    .map((quoted) => quoted.slice(1, -1))
  const named = metricsIn(read(file))
  expect(named.length).toBeGreaterThan(8)
  expect(named.filter((name) => !written.includes(name))).toEqual([])
  expect(named.filter((name) => !metricsIn(read('docs/operations.md')).includes(name))).toEqual([])
})

test('the metrics show what waits in the queues', async () => {
  const org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  const bought = await world.call(org.testKey, 'POST', '/payments/verify', {
    protocol: 'x402',
    credential: 'stub_payment_waiting',
    price: '0.01',
    walletId,
  })
  await world.database.db.run({
    text: `update payments set status = 'verified', created_at = now() - interval '1 hour' where id = $1`,
    values: [bought.body.paymentId],
  })
  const text = await (await fetch(`${world.base}/metrics`)).text()
  expect(text).toContain('purser_queue_depth{queue="payments",network="base-sepolia"} 1')
  const age = /purser_queue_age_seconds\{queue="payments",network="base-sepolia"\} (\d+)/.exec(text)?.[1]
  expect(Number(age)).toBeGreaterThanOrEqual(3_600)
})
