/** A reader who follows the guides as they stand on the page, against the service that `npm start` starts. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { freshDatabase } from '../../server/test/database.ts'
import type { Dev } from '../src/dev.ts'
import { findFreePort } from '../src/free-port.ts'
import { startTemporaryDev } from '../src/temporary-dev.ts'
import { type Followed, followGuide, type Texts } from './follow-guide.ts'
import { root, stepsOf } from './guide-steps.ts'
import { createDesk } from './reader-desk.ts'

const run = promisify(execFile)

/** The service, and a folder in which the reader saves and runs programs. */
export interface Reader {
  readonly dev: Dev
  readonly folder: string
  /** The port that this reader uses where the guides have 3000. */
  readonly port: number
  /** The program of a page that contains this text, with the addresses of this reader. */
  block(page: string, text: string, instead?: Texts): string
  env(more?: Texts): NodeJS.ProcessEnv
  program(name: string, code: string): Promise<string>
  /** Starts a server, and waits until it answers at the reader's port. */
  server(name: string, code: string, more?: Texts): Promise<ChildProcess>
  /** Saves the programs of a page, runs its commands, and compares what they print with what the page shows. */
  follow(page: string, followed?: Followed): Promise<void>
  /** Runs commands that are on no page, and returns what they print. */
  shell(commands: string): Promise<string>
  /** Approves the first movement that waits, as a person who is signed in: an API key approves nothing. */
  approveNext(): Promise<void>
  /** Ends what still runs. */
  endPrograms(): Promise<void>
  stop(): Promise<void>
}

/** Starts the service. All packages of the workspace are in the reader's folder, so `npm` has nothing to install. */
export async function startReader(): Promise<Reader> {
  const database = await freshDatabase({ plans: 'general' })
  const dev = await startTemporaryDev({ databaseUrl: database.url })
  const ports = await portsFor(dev)
  const folder = prepareFolder(dev)
  const desk = createDesk(folder, path.join(folder, 'purser'))
  const port = Number(ports.get('3000'))
  const placed = (text: string, instead: Texts = {}): string => {
    const here = text
      .replaceAll(new RegExp(`\\b(?:${[...ports.keys()].join('|')})\\b`, 'g'), (one) => ports.get(one) ?? one)
      .replaceAll('https://pay.example.com', dev.baseUrl)
    return Object.entries(instead).reduce((all, [from, to]) => all.replaceAll(from, to), here)
  }
  let person: Promise<HeadersInit> | undefined
  const env: Reader['env'] = (more = {}) => ({
    ...process.env,
    PURSER_BASE_URL: dev.baseUrl,
    PURSER_API_KEY: dev.apiKey,
    PAYER_KEY: dev.payer.privateKey,
    ...more,
  })
  return {
    dev,
    folder,
    port,
    env,
    block: (page, text, instead) => placed(programWith(page, text), { 'byw_…': dev.walletId, ...instead }),
    async program(name, code) {
      writeFileSync(path.join(folder, name), code)
      return (await run(process.execPath, [name], { cwd: folder, env: env() })).stdout
    },
    async server(name, code, more) {
      writeFileSync(path.join(folder, name), code)
      const child = desk.adopt(spawn(process.execPath, [name], { cwd: folder, env: env(more), detached: true }))
      await expect.poll(() => isUp(port)).toBe(true)
      return child
    },
    follow: (page, followed = {}) => followGuide(desk, page, { ...followed, placed }),
    shell: async (commands) => (await desk.run(commands)).stdout,
    async approveNext() {
      person ??= signIn(dev)
      await approveNext(dev, await person)
    },
    endPrograms: desk.endPrograms,
    async stop() {
      await desk.endPrograms()
      rmSync(folder, { recursive: true, force: true })
      await dev.stop()
      await database.drop()
    },
  }
}

/** A free port in place of each one of the guides. */
async function portsFor(dev: Dev): Promise<ReadonlyMap<string, string>> {
  const ports = new Map([['4100', String(dev.server.port)]])
  for (const port of ['3000', '3001', '3002']) ports.set(port, String(await findFreePort(0)))
  return ports
}

function isUp(port: number): Promise<boolean> {
  return fetch(`http://localhost:${port}/`).then(
    () => true,
    () => false,
  )
}

/** The folder of Purser as `npm start` leaves it, and the packages that the reader's programs find. */
function prepareFolder(dev: Dev): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'purser-guides-'))
  for (const name of ['node_modules', 'purser']) mkdirSync(path.join(folder, name))
  for (const name of readdirSync(path.join(root, 'node_modules')))
    symlinkSync(path.join(root, 'node_modules', name), path.join(folder, 'node_modules', name))
  // mppx is not among the packages of the root.
  symlinkSync(path.join(root, 'packages/sdk/node_modules/mppx'), path.join(folder, 'node_modules/mppx'))
  for (const place of [folder, path.join(folder, 'purser')]) symlinkSync(dev.dataDir, path.join(place, '.purser'))
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  return folder
}

function programWith(page: string, text: string): string {
  const found = stepsOf(page).find(({ language, code }) => /^(?:js|ts|python)$/.test(language) && code.includes(text))
  if (found === undefined) throw new Error(`${page} has no program with ${text}`)
  return found.code
}

/** The headers of a person who used the link of `npm start` in a browser, and pressed the button of its page. */
async function signIn(dev: Dev): Promise<HeadersInit> {
  const pressed = { method: 'POST', headers: { origin: new URL(dev.baseUrl).origin } }
  const signedIn = await fetch(dev.signInUrl, { ...pressed, redirect: 'manual' })
  const cookies = signedIn.headers.getSetCookie().map((one) => one.split(';')[0])
  const origin = new URL(dev.dashboardUrl).origin
  return { cookie: cookies.join('; '), origin, 'x-service-organisation': dev.organisationId }
}

async function approveNext(dev: Dev, headers: HeadersInit): Promise<void> {
  const approve = async (): Promise<number | undefined> => {
    const list = await fetch(`${dev.baseUrl}/approvals?status=waiting`, { headers })
    const [waiting] = (await list.json()) as { id: string }[]
    if (waiting === undefined) return undefined
    return (await fetch(`${dev.baseUrl}/approvals/${waiting.id}/approve`, { method: 'POST', headers })).status
  }
  await expect.poll(approve).toBe(200)
}
