import { mkdirSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import chromium from '@sparticuz/chromium'
import { type Browser, type BrowserContext, chromium as playwright } from 'playwright-core'

/** What the package turns off of a browser's security. The tests are about that security, so it stays on. */
const unsafe =
  /^--(?:single-process|no-zygote|disable-web-security|allow-running-insecure-content|disable-site-isolation-trials|disable-features=.*)$/

/** What draws by an emulated graphics card. Without one, the browser draws in its own code, which takes less. */
const graphics = /^--(?:ignore-gpu-blocklist|in-process-gpu|use-gl=.*|use-angle=.*|enable-unsafe-swiftshader)$/

/** A real browser, out of an npm package, as strict as the one of a reader. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = await unpackBrowser()
  // Pages of one context and site share a process, and so the code that it has compiled. Other sites and contexts have their own as before.
  const own = ['--disable-gpu', '--renderer-process-limit=1']
  const args = [...chromium.args.filter((one) => !unsafe.test(one) && !graphics.test(one)), ...own]
  return playwright.launch({ executablePath, args, headless: true })
}

/** Unpacks the browser into a directory of this user: one that another user unpacked cannot be run. Returns the program. */
async function unpackBrowser(): Promise<string> {
  const { TMPDIR: before } = process.env
  const directory = path.join(os.tmpdir(), `purser-browser-${os.userInfo().uid}`)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  process.env.TMPDIR = directory
  try {
    return await chromium.executablePath()
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

export interface Watched {
  /** Console errors, failed requests and answers of 400 and above. */
  readonly faults: string[]
}

/** The events of a context that `watch` listens to. */
export const events = ['console', 'weberror', 'requestfailed', 'request', 'response'] as const

/** Notes whatever goes wrong on any page of the context. */
export function watch(context: BrowserContext, origin: string): Watched {
  const faults: string[] = []
  context.on('console', (message) => {
    if (message.type() === 'error' || /Content Security Policy/i.test(message.text()))
      faults.push(`console: ${message.text()}`)
  })
  context.on('weberror', (error) => faults.push(`error: ${error.error().message}`))
  context.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? ''
    // A page that is left ends its event stream.
    if (!/ERR_ABORTED/.test(reason)) faults.push(`failed: ${request.method()} ${request.url()} ${reason}`)
  })
  context.on('request', (request) => {
    if (!request.url().startsWith(origin) && !/^(?:blob|data):/.test(request.url()))
      faults.push(`foreign: ${request.url()}`)
  })
  context.on('response', (response) => {
    if (response.status() >= 400) faults.push(`${response.status()}: ${response.request().method()} ${response.url()}`)
  })
  return { faults }
}
