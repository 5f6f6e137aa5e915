/**
 * Runs `debian/test_service.py` with the Python and the packages of Debian against a service of its own. Without these packages it says so
 * and ends well, so that a build without them can run it.
 */

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { startTemporaryDev } from '../devnet/src/temporary-dev.ts'

const python = process.env.PYTHON ?? '/usr/bin/python3'
const packages = ['pytest', 'flask', 'fastapi', 'httpx', 'uvicorn']
const versions = `import ${packages.join(', ')}; print(*[f"{one.__name__} {one.__version__}" for one in (${packages.join(', ')})], sep=", ")`
const found = spawnSync(python, ['-c', versions], { encoding: 'utf8' })
if (found.status !== 0) {
  const debian = packages.map((name) => `python3-${name}`).join(' ')
  console.warn(`Skipped: ${python} does not have ${packages.join(', ')}. On Debian: apt-get install ${debian}`)
} else {
  console.log(`${python} with ${found.stdout.trim()}`)
  const dev = await startTemporaryDev()
  try {
    const env = {
      ...process.env,
      PYTHONPATH: path.join(import.meta.dirname, 'src'),
      PYTHONDONTWRITEBYTECODE: '1',
      PURSER_BASE_URL: dev.baseUrl,
      PURSER_API_KEY: dev.apiKey,
      WALLET: dev.walletId,
    }
    const tests = path.join(import.meta.dirname, 'debian')
    const args = ['-m', 'pytest', '-p', 'no:cacheprovider', '-q', '--durations=3', ...process.argv.slice(2), tests]
    // The service runs in this process, which must not wait without serving it.
    const [code] = await once(spawn(python, args, { env, stdio: 'inherit' }), 'exit')
    process.exitCode = code ?? 1
  } finally {
    await dev.stop()
  }
}
