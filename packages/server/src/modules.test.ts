import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../test/database.ts'
import { createFakeScreening } from '../test/screening-double.ts'
import { testConfig } from '../test/test-config.ts'
import { createModules } from './modules.ts'
import { systemClock } from './platform/clock.ts'
import { createLog } from './platform/log.ts'

let database: TestDatabase
const filesDirectory = mkdtempSync(path.join(tmpdir(), 'purser-modules-'))
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(async () => {
  await database?.drop()
  rmSync(filesDirectory, { recursive: true, force: true })
})

/** A configuration, overrides, and how often one of the ports was closed. */
function aSetting() {
  let closed = 0
  const screening = {
    ...createFakeScreening(() => systemClock.now()),
    stop: async () => {
      closed += 1
    },
  }
  const overrides = { log: createLog({ level: 'silent' }), screening }
  return { config: testConfig(database.url, { filesDirectory }), overrides, closed: () => closed }
}

test('if a feature fails to be built, the ports that were opened are closed', async () => {
  const { config, overrides, closed } = aSetting()
  const failing = {
    ...overrides,
    get releasedPerDayMin(): number {
      throw new Error('no payments')
    },
  }
  await expect(createModules(config, failing)).rejects.toThrow('no payments')
  expect(closed()).toBe(1)
})

test('if a part fails to stop, the others and the ports are closed', async () => {
  const { config, overrides, closed } = aSetting()
  const built = await createModules(config, overrides)
  built.opened.ports.chains.stop = () => Promise.reject(new Error('the chains do not stop'))
  await expect(built.close()).rejects.toThrow('the chains do not stop')
  expect(closed()).toBe(1)
})
