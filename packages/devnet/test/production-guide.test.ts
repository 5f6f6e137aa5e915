/** The rehearsal of docs/production.md, on the PostgreSQL of this run and a local chain. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { anEmptyDatabase } from '../../server/test/database.ts'
import { startChain } from '../src/chains.ts'
import { findFreePort } from '../src/free-port.ts'
import { followGuide } from './follow-guide.ts'
import { root, stepsOf } from './guide-steps.ts'
import { createDesk } from './reader-desk.ts'

const page = 'docs/production.md'
const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

/** A reader in the folder of Purser, whose scripts are real. */
async function anOperator() {
  const home = mkdtempSync(path.join(tmpdir(), 'purser-operator-'))
  const desk = createDesk(home, root)
  stops.push(() => rmSync(home, { recursive: true }), desk.endPrograms)
  await desk.run('npm() { command npm "$@"; }')
  return desk
}

test('an operator makes the tables, starts the service, makes an organisation and takes a payment', async () => {
  const database = await anEmptyDatabase()
  stops.push(database.drop)
  const chain = await startChain({ network: 'base-sepolia' })
  stops.push(() => chain.stop())
  const ports = { 4200: await findFreePort(0), 9464: await findFreePort(0) }
  const placed = (text: string): string =>
    text
      .replaceAll('4200', String(ports[4200]))
      .replaceAll('9464', String(ports[9464]))
      .replaceAll('postgres://purser:change-me@localhost:5432/purser', database.url)
      .replaceAll('https://sepolia.base.org', chain.rpcUrl)
  await followGuide(await anOperator(), page, { section: 'Rehearse it', placed })
})

test('the commands that the page does not run are commands of a shell, and name files that exist', async () => {
  const [step] = stepsOf(page).filter(({ sections: [section] }) => section === 'Before real money')
  const desk = await anOperator()
  const files = [...(step?.code ?? '').matchAll(/deploy\/[\w./]+(?:example|sh|yaml)/g)].map(([file]) => file)
  expect(files.length).toBe(3)
  const checks = `bash -n << 'END'\n${step?.code}END\nls ${files.join(' ')}`
  expect(await desk.run(checks)).toMatchObject({ code: 0, stdout: `${files.toSorted().join('\n')}\n` })
})
