import { defineConfig } from 'vitest/config'
import type { Reporter } from 'vitest/node'

/** The last line says in plain words how many tests there were, for whoever reads a log and not a screen. */
const closingLine: Reporter = {
  onTestRunEnd(modules) {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) for (const test of module.children.allTests()) counts[test.result().state] += 1
    console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped + counts.pending} skipped`)
  },
}

export default defineConfig({
  test: {
    include: ['bench/*.test.ts', 'packages/*/src/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
    globalSetup: ['packages/server/test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 90_000,
    retry: 0,
    // A poll tells what comes, not how soon: vitest's own second is short where two workers share two cores.
    expect: { poll: { timeout: 20_000 } },
    reporters: ['default', closingLine],
  },
})
