/** What an HTTP call hands to the handler, as far as this function reads it. */
export interface HttpEvent {
  headers: Record<string, string | undefined>;
  requestContext?: { http?: { method: string } };
  /** base64 */
  body?: string;
}

/** What becomes the HTTP response. */
export interface HttpResponse {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}
