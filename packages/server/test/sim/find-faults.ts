import { spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { expect, inject } from 'vitest'
import type { Verdict } from './faulty.ts'
import type { Fault } from './mutation.ts'

/**
 * Runs a simulator over the faulty services, in a separate process: Node loads their sources, unchanged but for the fault. Each must be found by
 * a violation. `SIM_FAULTS=all` looks for every fault that no direct test finds, the name of a fault for that one, and otherwise for those that few
 * seeds find.
 */
export async function expectFound(simulator: string, faults: readonly Fault[]): Promise<void> {
  const wanted = process.env.SIM_FAULTS
  const isWanted = ({ name, isQuick, testedBy }: Fault) =>
    wanted === undefined ? isQuick : wanted === name || (wanted === 'all' && testedBy === undefined)
  const names = faults.filter(isWanted).map(({ name }) => name)
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'faulty.ts'), simulator, ...names], {
    env: { ...process.env, POSTGRES_URL: inject('postgresUrl') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const verdicts: Verdict[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    const verdict: Verdict = JSON.parse(line)
    verdicts.push(verdict)
    if (wanted !== undefined) console.log(line)
    const { foundBy = 1 } = faults.find(({ name }) => name === verdict.name) ?? {}
    if (verdict.seed !== undefined && verdict.seed !== foundBy)
      console.log(
        `${verdict.name} is found by seed ${verdict.seed}, after ${verdict.seconds} s. Begin with it: foundBy`,
      )
  }
  expect(verdicts.filter(({ isViolation }) => isViolation !== true)).toEqual([])
  expect(verdicts.map(({ name }) => name)).toEqual(names)
}
