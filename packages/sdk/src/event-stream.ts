/** One event of a stream as it came. `id` is the last id that was sent, which an event keeps when it has none of its own; `data` is empty where
 * nothing but the id is told. */
export interface StreamedEvent {
  readonly id: string
  readonly data: string
}

/** Most characters of one event; a longer one is not from Purser. */
const eventLengthMax = 4_000_000

/**
 * Reads Server-Sent Events out of text as it comes, in whatever pieces (WHATWG HTML, section 9.2.6). Comments, `event` and
 * `retry` are passed over. An event that the text breaks off is dropped: it will be sent again.
 */
export async function* readEvents(pieces: AsyncIterable<string>): AsyncGenerator<StreamedEvent> {
  const event = { id: '', data: '' }
  let told = ''
  for await (const line of linesOf(pieces)) {
    if (line !== '') {
      take(event, line)
      continue
    }
    if (event.data !== '' || event.id !== told) yield { id: event.id, data: event.data.slice(0, -1) }
    told = event.id
    event.data = ''
  }
}

function take(event: { id: string; data: string }, line: string): void {
  const colon = line.indexOf(':')
  const [field, value] = colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
  if (field === 'data') event.data += `${value}\n`
  if (field === 'id' && !value.includes('\0')) event.id = value
  if (event.data.length > eventLengthMax) throw new RangeError('An event of the stream is too long.')
}

/** A line ends with CR LF, LF or CR; a CR at the end of a piece may be the half of a pair. */
async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = ''
  let isFirst = true
  for await (const piece of pieces) {
    rest += isFirst ? piece.replace(/^\uFEFF/, '') : piece
    isFirst &&= rest === ''
    const end = 1 + Math.max(rest.lastIndexOf('\n'), rest.slice(0, -1).lastIndexOf('\r'))
    if (rest.length - end > eventLengthMax) throw new RangeError('A line of the stream is too long.')
    if (end === 0) continue
    const whole = rest.slice(0, end)
    rest = rest.slice(end)
    yield* whole.split(/\r\n|\n|\r/).slice(0, -1)
  }
}
