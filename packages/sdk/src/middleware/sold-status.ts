/** Only a 2xx is sold: an answer that says "not modified" or "look elsewhere" hands out nothing. */
export function isSold(status: number): boolean {
  return status >= 200 && status < 300
}
