import { execFile, spawnSync } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { aWorld } from '../../server/test/world.ts'

const run = promisify(execFile)
const cwd = path.resolve(import.meta.dirname, '..')
const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0
const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }

if (!hasPython) console.warn('packages/python is not tested: there is no python3 of version 3.9 or newer')

test.skipIf(!hasPython)('the unit tests of the Python package pass with the standard library alone', async () => {
  const { stderr } = await run('python3', ['-m', 'unittest'], { cwd, env })
  expect(stderr).toMatch(/Ran (?:[5-9]\d|\d{3,}) tests[\s\S]*\nOK/)
})

test.skipIf(!hasPython)('a Python program sells routes and reads signed events with the running service', async () => {
  const world = await aWorld()
  try {
    const org = await world.organisation('enterprise')
    const { id } = await world.wallet(org)
    const { stdout } = await run('python3', ['-m', 'tests.story', world.base, org.testKey, id], { cwd, env })
    expect(JSON.parse(stdout)).toEqual({
      wsgi: {
        unpaid: [402, true, true],
        bad: [402, false],
        paid: [200, true, 'settled', '0.01', true],
        mpp: [200, true],
      },
      asgi: [402, 200, 'rain', 1],
      events: [
        ['payment.settled', 'payment.settled'],
        ['signature-mismatch', 'signature-mismatch'],
      ],
      conflict: [409, 'wallet-already-registered', true],
      logs: true,
    })
  } finally {
    await world.stop()
  }
})
