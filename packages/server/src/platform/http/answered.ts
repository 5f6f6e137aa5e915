import type { Caller } from '../ctx.ts'
import type { RequestId } from '../ids.ts'
import type { RawAnswer } from './call.ts'
import type { HttpOptions } from './http-options.ts'
import { problemCodeOf } from './problem.ts'

/** What a request carries so that its response can be reported. */
export interface Reportable {
  /** Set once the caller is known, until the response begins. */
  reportAnswer?: ((answer: RawAnswer) => void) | undefined
}

interface Request extends Reportable {
  readonly id: string
  readonly method: string
}

/** Has the response to a request reported, now that its caller is known. `arrivedAt` is a time of `performance.now()`. */
export function reportAnswer(
  request: Request,
  { arrivedAt, ...known }: { readonly caller: Caller; readonly route: string; readonly arrivedAt: number },
  { onAnswer }: Pick<HttpOptions, 'onAnswer'>,
): void {
  if (onAnswer === undefined) return
  const { id, method } = request
  request.reportAnswer = (answer) =>
    onAnswer({
      ...known,
      requestId: id as RequestId,
      method,
      status: answer.status,
      durationMs: performance.now() - arrivedAt,
      code: problemCodeOf(answer),
    })
}

/** Reports a response that begins; once for each request. */
export function answered(request: Request, answer: RawAnswer): void {
  request.reportAnswer?.(answer)
  request.reportAnswer = undefined
}
