import type { BrowserContext, Page } from 'playwright-core'
import { launchBrowser } from '../packages/dashboard/test/browser.ts'
import { answerPayments, flood, floodedPaymentId } from '../packages/dashboard/test/flood.ts'
import { signIn } from '../packages/dashboard/test/stage.ts'
import type { Dev } from '../packages/devnet/src/dev.ts'
import { startTemporaryDev } from '../packages/devnet/src/temporary-dev.ts'
import type { Closing } from './closing.ts'
import { figure, median, sum, table } from './figures.ts'

export interface DashboardPlan {
  /** The number of payments in the table. */
  readonly rows: number
  readonly scrollMs: number
  readonly runs: number
}

export const fullDashboard: DashboardPlan = { rows: 100_000, scrollMs: 5_000, runs: 5 }
export const quickDashboard: DashboardPlan = { rows: 100_000, scrollMs: 2_000, runs: 3 }

const eventsPerSecond = 1_000
const viewport = { width: 1440, height: 900 }
/** Pixels per frame, about three rows: a fast fling. */
const step = 120
const rowHeight = 44
const longTasksMax = 0
const ratioMin = 0.9

interface Frames {
  readonly framesPerSecond: number
  /** Tasks of the page over 50 ms, in milliseconds. */
  readonly longTasksMs: readonly number[]
}

/**
 * Scrolls the table of payments in a real browser, alternating with a bare virtual list of the same length; then sends
 * it a thousand events a second, alternating with a bare page that counts them. Returns the number of missed targets:
 * at least 0.9 of the frames of the bare page each time, and no task over 50 ms.
 */
export async function benchDashboard(plan: DashboardPlan, closing: Closing): Promise<number> {
  const { rows, scrollMs, runs } = plan
  const dev = await startTemporaryDev()
  closing.add(() => dev.stop())
  const browser = await launchBrowser()
  closing.add(() => browser.close())
  await makePayment(dev)
  const storageState = await signIn(browser, dev)
  const open = async () => {
    const context = await browser.newContext({ viewport, storageState })
    await watchTasks(context)
    return context.newPage()
  }
  const scrolled = await compare(plan, {
    title: `scrolling ${rows.toLocaleString('en-US')} payments, ${step} pixels a frame, median of ${runs} runs`,
    ours: await openPayments(await open(), dev, rows),
    bare: await openBare(await open(), rows),
    by: step,
  })
  const paymentIds = Array.from({ length: rows }, (_, index) => floodedPaymentId(index))
  const flooded = async () => {
    const page = await open()
    await flood(page, { perSecond: eventsPerSecond, paymentIds })
    return page
  }
  const live = await compare(plan, {
    title: `${eventsPerSecond.toLocaleString('en-US')} events a second, ${scrollMs / 1_000} s, median of ${runs} runs`,
    ours: await openPayments(await flooded(), dev, liveRows),
    bare: await openCounter(await flooded()),
    by: 0,
  })
  return scrolled + live
}

interface Compared {
  readonly title: string
  readonly ours: Page
  readonly bare: Page
  /** Pixels that both scroll in each frame. */
  readonly by: number
}

/** Prints the frames of both pages, and returns the number of missed targets. */
async function compare({ scrollMs, runs }: DashboardPlan, { title, by, ...of }: Compared): Promise<number> {
  const pairs: { readonly ours: Frames; readonly bare: Frames }[] = []
  for (let run = 0; run <= runs; run += 1) {
    const how = { ms: scrollMs, step: by }
    const pair = { ours: await framesOf(of.ours, how), bare: await framesOf(of.bare, how) }
    // The first pair warms both up.
    if (run > 0) pairs.push(pair)
  }
  const ours = median(pairs.map((pair) => pair.ours.framesPerSecond))
  const limit = median(pairs.map((pair) => pair.bare.framesPerSecond))
  const longTasks = pairs.flatMap((pair) => pair.ours.longTasksMs)
  console.log(`\n${title}\n`)
  console.log(
    table(
      ['', 'frames/s', 'tasks over 50 ms', 'longest, ms'],
      [
        ['payments', figure(ours), String(longTasks.length), figure(Math.max(0, ...longTasks))],
        ['bare page', figure(limit), String(sum(pairs.map((pair) => pair.bare.longTasksMs.length))), ''],
      ],
    ),
  )
  console.log(`\n  ratio (frames of payments / of the bare page): ${figure(ours / limit)}x, at least ${ratioMin}x`)
  await of.ours.context().close()
  await of.bare.context().close()
  return (ours / limit < ratioMin ? 1 : 0) + (longTasks.length > longTasksMax ? 1 : 0)
}

/** As many rows as after twenty pages of the list. */
const liveRows = 2_000
/** The rows of one reading of the list. */
const pageRows = 100

async function makePayment({ apiKey, baseUrl, walletId }: Dev): Promise<void> {
  const response = await fetch(`${baseUrl}/test/payments`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ walletId, price: '0.01' }),
  })
  if (!response.ok) throw new Error(`the test payment was refused: ${await response.text()}`)
}

/** Opens the page of payments, whose first page of the list has `rows` rows in the shape of the one payment that there is. */
async function openPayments(page: Page, dev: Dev, rows: number): Promise<Page> {
  await answerPayments(page, (reading) => [...Array(reading === 0 ? rows : pageRows).keys()])
  await page.goto(`${dev.dashboardUrl}/test/payments`)
  await page.getByRole('row').nth(5).waitFor()
  return page
}

/** A virtual list without a framework: the visible rows, each of eight cells of plain text, are written as one piece of HTML per frame. */
async function openBare(page: Page, rows: number): Promise<Page> {
  await page.setContent(
    `<!doctype html><style>
      body { margin: 0; font: 13px sans-serif }
      table { width: 100%; table-layout: fixed; border-collapse: collapse }
      tr { height: ${rowHeight}px; border-bottom: 1px solid #ddd }
    </style><table><tbody></tbody></table>`,
  )
  await page.evaluate(
    ({ rows, rowHeight }) => {
      const body = document.querySelector('tbody')
      const overscan = 12
      let shownFrom = -1
      const show = () => {
        const first = Math.max(0, Math.floor(window.scrollY / rowHeight) - overscan)
        if (body === null || first === shownFrom) return
        shownFrom = first
        const last = Math.min(rows, first + Math.ceil(window.innerHeight / rowHeight) + 2 * overscan)
        const cells = (row: number) =>
          [
            '0.01 USDC',
            'Settled',
            'GET api.example.com/forecast',
            'x402',
            'Base Sepolia',
            '0xDAC4…358c',
            `pay_${row}`,
            'now',
          ]
            .map((text) => `<td>${text}</td>`)
            .join('')
        const spacer = (count: number) => `<tr style="height:${count * rowHeight}px"></tr>`
        const shown = Array.from({ length: last - first }, (_, at) => `<tr>${cells(first + at)}</tr>`)
        body.innerHTML = spacer(first) + shown.join('') + spacer(rows - last)
      }
      addEventListener('scroll', show)
      show()
    },
    { rows, rowHeight },
  )
  return page
}

/** A page without a framework that reads the stream, parses each event, and shows ten times a second how many came. */
async function openCounter(page: Page): Promise<Page> {
  await page.goto('about:blank')
  await page.evaluate(() => {
    const text = document.body.appendChild(document.createElement('p'))
    let events = 0
    const read = async () => {
      const { body } = await fetch('http://bare.test/events/stream')
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
      while (reader !== undefined) {
        const { done, value } = await reader.read()
        if (done) return
        for (const [, data = ''] of value.matchAll(/^data: (.*)$/gm)) {
          JSON.parse(JSON.parse(data).body)
          events += 1
        }
      }
    }
    void read()
    setInterval(() => {
      text.textContent = String(events)
    }, 100)
  })
  return page
}

async function watchTasks(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    const tasks: number[] = []
    Object.assign(globalThis, { longTasks: tasks })
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
      type: 'longtask',
    })
  })
}

/** The frames of a page during `ms`, while it scrolls by `step` pixels in each. */
async function framesOf(page: Page, { ms, step }: Record<'ms' | 'step', number>): Promise<Frames> {
  await page.bringToFront()
  await page.evaluate(() => window.scrollTo(0, 0))
  return page.evaluate(
    ({ ms, step }) =>
      new Promise<Frames>((resolve) => {
        const { longTasks = [] } = globalThis as { longTasks?: number[] }
        longTasks.length = 0
        const began = performance.now()
        let frames = 0
        const frame = () => {
          frames += 1
          window.scrollBy(0, step)
          const seconds = (performance.now() - began) / 1_000
          if (seconds * 1_000 < ms) requestAnimationFrame(frame)
          else resolve({ framesPerSecond: frames / seconds, longTasksMs: [...longTasks] })
        }
        requestAnimationFrame(frame)
      }),
    { ms, step },
  )
}
