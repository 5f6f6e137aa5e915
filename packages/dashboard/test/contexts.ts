import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { events } from './browser.ts'
import { patienceMs, type signIn } from './stage.ts'

export type StorageState = Awaited<ReturnType<typeof signIn>>
/** Options of a context. */
export type Lent = Omit<BrowserContextOptions, 'storageState'>

interface Kept {
  readonly context: BrowserContext
  /** A page that runs nothing, but whose process stays: the next page of the context finds the dashboard's code there. */
  readonly parked: Page
}

/**
 * Lends contexts to tests, one after the other: a page in a new context loads and compiles all code again, which takes twice the CPU. Each test has
 * a new page, the cookies and the storage that it states and no other, and no listener of a test before. A context of a test that failed is not
 * lent again.
 */
export class Contexts {
  readonly #browser: Browser
  readonly #origin: string
  /** Those that no test uses now, by their options. */
  readonly #free = new Map<string, Kept[]>()

  constructor(browser: Browser, origin: string) {
    this.#browser = browser
    this.#origin = origin
  }

  /** `isAlone`: the context is not lent again, since the test changes what no later one can take back, such as the clock. */
  async lend(
    { options, isAlone }: { readonly options: Lent; readonly isAlone: boolean },
    storageState: StorageState,
    work: (context: BrowserContext) => Promise<void>,
  ): Promise<void> {
    const kind = JSON.stringify(options)
    const free = this.#free.get(kind) ?? []
    this.#free.set(kind, free)
    const kept = (isAlone ? undefined : free.pop()) ?? (await this.#open(options))
    const { context, parked } = kept
    let isClean = false
    try {
      await this.#become(kept, storageState)
      await work(context)
      isClean = !isAlone
    } finally {
      for (const event of events) context.removeAllListeners(event)
      const used = context.pages().filter((page) => page !== parked)
      if (isClean) await Promise.all(used.map((page) => page.close()))
      else await context.close()
    }
    if (isClean) free.push(kept)
  }

  async #open(options: Lent): Promise<Kept> {
    const context = await this.#browser.newContext(options)
    context.setDefaultTimeout(patienceMs)
    const parked = await context.newPage()
    await parked.goto(`${this.#origin}/dashboard/theme.js`)
    return { context, parked }
  }

  /** Replaces all that the tests before left in the browser. */
  async #become({ context, parked }: Kept, { cookies, origins }: StorageState): Promise<void> {
    await context.clearCookies()
    await context.addCookies(cookies)
    const stored = origins.find(({ origin }) => origin === this.#origin)?.localStorage ?? []
    await parked.evaluate(async (items) => {
      localStorage.clear()
      for (const { name, value } of items) localStorage.setItem(name, value)
      for (const { name } of await indexedDB.databases()) if (name !== undefined) indexedDB.deleteDatabase(name)
    }, stored)
  }
}
