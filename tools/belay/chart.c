/* SPDX-License-Identifier: Apache-2.0
 *
 * chart.c - see chart.h.
 */
#include "chart.h"

#include "base/size.h"

#define HEAD   18.0 /* room above a drawing for the text of what is under the pointer */
#define MARGIN 52.0 /* left of it, for the numbers of its scale */
#define THIN   2.0  /* a rectangle that is thinner would vanish behind its own outline */
#define LEAST  0.4  /* and one that is thinner than this would not be seen at all */

static const char *const style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}h1{font-size:1.5em;overflow-wrap:anywhere}"
    "h2{font-size:1.2em;margin:1.2em 0 .3em}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{padding:.15em 1.5em .15em "
    "0;text-align:left}"
    "svg{width:100%;height:auto;display:block}.back{fill:#f3f4f7}.key{display:inline-block;"
    "width:.8em;height:.8em;margin:0 .35em 0 "
    "1em}.key:first-child{margin-left:0}.ends{display:flex;padding-left:4.95%;"
    "justify-content:space-between;"
    "font-size:12px;color:#555}rect.b{stroke:#fff;stroke-width:.3}rect.thin{stroke:none}"
    ".c0{fill:#3b76af;background:#3b76af}.c1{fill:#8ab4d8;background:#8ab4d8}"
    ".c2{fill:#5a9e6f;background:#5a9e6f}.c3{fill:#e39b3c;background:#e39b3c}"
    ".c4{fill:#b77bb0;background:#b77bb0}.forward{fill:#8ab4d8;background:#8ab4d8}"
    ".save{fill:#3b76af;background:#3b76af}.recompute{fill:#e39b3c;background:#e39b3c}"
    ".drop{fill:#bbb;background:#bbb}.backward{fill:#5a9e6f;background:#5a9e6f}"
    ".s0,.s1,.s2,.s3,.s4,.s5{fill:none;stroke-width:1.6}.s0{stroke:#999;background:#999}"
    ".s1{stroke:#e39b3c;background:#e39b3c}.s2{stroke:#3b76af;background:#3b76af}"
    ".s3{stroke:#b77bb0;background:#b77bb0}.s4{stroke:#c03d3e;background:#c03d3e}"
    ".s5{stroke:#5a9e6f;background:#5a9e6f}"
    ".live,.after{fill:none;stroke:#111;background:#111;stroke-width:1.2}"
    ".after{stroke:#c03d3e;background:#c03d3e;stroke-width:2}"
    ".before{fill:none;stroke:#888;background:#888;stroke-width:2}"
    ".bound{stroke:#c33;background:#c33;stroke-width:1.2;stroke-dasharray:6 4}"
    ".grid{stroke:#889;stroke-width:.5;stroke-opacity:.5}"
    "text{font:11px system-ui,sans-serif;fill:#333;stroke:#fff;stroke-width:3;stroke-opacity:.8;"
    "paint-order:stroke}.tip{visibility:hidden;font-size:13px;stroke:none}"
    "g:hover>.tip,g:focus>.tip{visibility:visible}g:focus{outline:none}"
    "svg:hover g:focus:not(:hover)>.tip{visibility:hidden}"
    "g:hover>rect.b,g:focus>rect.b{stroke:#111;stroke-width:2}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1d}.back{fill:#23262b}"
    ".ends{color:#aaa}rect.b{stroke:#23262b}rect.thin{stroke:none}.live{stroke:#fff;background:#"
    "fff}"
    ".bound{stroke:#f77;background:#f77}.drop{fill:#777;background:#777}"
    ".after{stroke:#f07070;background:#f07070}text{fill:#ddd;stroke:#181a1d}"
    "g:hover>rect.b,g:focus>rect.b{stroke:#fff}}";

void chart_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

void chart_page(FILE *out, const char *title)
{
    fputs("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          out);
    chart_text(out, title);
    fprintf(out, "</title><style>%s</style>\n<h1>", style);
    chart_text(out, title);
    fputs("</h1>\n", out);
}

/* Bytes between two lines of a scale that ends at `top`. */
static uint64_t scale_step(uint64_t top)
{
    uint64_t step = 1;
    while (step <= top / 6)
        step *= 2;
    return step;
}

uint64_t chart_top(uint64_t most)
{
    return most + most / 25 + 1;
}

void chart_begin(FILE *out, const char *label, double height, uint64_t top)
{
    fprintf(out, "<svg viewBox=\"%.0f %.0f %.0f %.0f\" aria-label=\"", -MARGIN, -HEAD,
            CHART_WIDTH + MARGIN, height + HEAD);
    chart_text(out, label);
    fprintf(out, "\"><rect class=\"back\" y=\"0\" width=\"%.0f\" height=\"%.0f\"/>\n", CHART_WIDTH,
            height);
    uint64_t step = scale_step(top);
    for (uint64_t at = step; at < top; at += step)
        fprintf(out, "<line class=\"grid\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>", CHART_WIDTH,
                height - (double)at / (double)top * height,
                height - (double)at / (double)top * height);
    fputc('\n', out);
}

void chart_end(FILE *out, double height, uint64_t top)
{
    uint64_t step = scale_step(top);
    for (uint64_t at = step; at < top; at += step) {
        char text[BLYI_SIZE_TEXT];
        double y = height - (double)at / (double)top * height;
        fprintf(out, "<text text-anchor=\"end\" x=\"-6\" y=\"%.1f\">%s</text>", y + 4,
                blyi_size_short(at, text));
    }
    fputs("</svg>\n", out);
}

void chart_ends(FILE *out, const char *first, const char *last)
{
    fputs("<div class=\"ends\"><span>", out);
    chart_text(out, first);
    fputs("</span><span>", out);
    chart_text(out, last);
    fputs("</span></div>\n", out);
}

void chart_line(FILE *out, double y, const char *name)
{
    fprintf(out,
            "<line class=\"bound\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
            "<text text-anchor=\"end\" x=\"%.0f\" y=\"%.1f\">",
            CHART_WIDTH, y, y, CHART_WIDTH - 4, y < 16 ? y + 13 : y - 4);
    chart_text(out, name);
    fputs("</text>\n", out);
}

void chart_rect(FILE *out, const char *colour, double x, double y, double width, double height,
                bool focus)
{
    if (focus)
        fputs("<g tabindex=\"0\">", out);
    bool thin = width < THIN || height < THIN;
    fprintf(out, "<rect class=\"b %s%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"%s",
            colour, thin ? " thin" : "", x, y, width > LEAST ? width : LEAST,
            height > LEAST ? height : LEAST, focus ? "/>" : "><title>");
    if (focus)
        fprintf(out, "<text class=\"tip\" x=\"0\" y=\"-5\">");
}

void chart_rect_end(FILE *out, bool focus)
{
    fputs(focus ? "</text></g>\n" : "</title></rect>\n", out);
}
