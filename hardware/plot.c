/* See hardware/plot.h. */
#include "hardware/plot.h"

#include <stdbool.h>

#define WIDTH 720.0
#define HEIGHT 420.0
#define LEFT 64.0
#define RIGHT 150.0 /* the names of the series stand there */
#define TOP 48.0
#define BOTTOM 64.0

/* Dark enough on white, and apart for most colour-blind readers (Okabe and Ito). */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f" };
#define COLOURS (sizeof colours / sizeof *colours)

static void escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    }
}

static void label(FILE *out, double x, double y, const char *anchor, const char *more, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, more);
    escaped(out, text);
    fputs("</text>\n", out);
}

static double column(const struct rf_plot *plot, size_t place)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * ((double)place + 0.5) / (double)(plot->place_count ? plot->place_count : 1);
}

static double row(double value, double least, double most)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - least) / (most - least);
}

static void frame(const struct rf_plot *plot, FILE *out, double least, double most, double step, bool percent)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    label(out, LEFT, 26, "start", " font-size=\"16\"", plot->title);
    for (double value = least; value <= most + step / 1000; value += step) {
        char text[32];
        double y = row(value, least, most);
        snprintf(text, sizeof text, percent ? "%.0f%%" : step < 0.1 ? "%.2f" : step < 1 ? "%.1f" : "%.0f",
                 percent ? value * 100 : value);
        fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#dddddd\"/>\n", LEFT, y, WIDTH - RIGHT, y);
        label(out, LEFT - 8, y + 4, "end", "", text);
    }
    bool crowded = plot->place_count > 8; /* then names would meet: they stand in three rows */
    for (size_t place = 0; place < plot->place_count; place++)
        label(out, column(plot, place), HEIGHT - BOTTOM + (crowded ? 16 + 13 * (double)(place % 3) : 20), "middle", "",
              plot->places[place]);
    label(out, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "middle", "", plot->x_label);
    fprintf(out, "<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">", (TOP + HEIGHT - BOTTOM) / 2);
    escaped(out, plot->y_label);
    fputs("</text>\n", out);
}

static double step_for(double range)
{
    static const double steps[] = { 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50 };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (range / steps[i] <= 8)
            return steps[i];
    return range / 8;
}

void rf_plot_lines(const struct rf_plot *plot, FILE *out)
{
    double most = 1.05;
    for (size_t i = 0; i < plot->series_count * plot->place_count; i++)
        most = plot->values[i] > most ? plot->values[i] : most;
    double step = step_for(most - 1), top = 1;
    while (top < most - step / 1000)
        top += step;
    frame(plot, out, 1, top, step, false);
    for (size_t series = 0; series < plot->series_count; series++) {
        const double *values = plot->values + series * plot->place_count;
        const char *colour = colours[series % COLOURS];
        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
        for (size_t place = 0; place < plot->place_count; place++)
            fprintf(out, "%.1f,%.1f ", column(plot, place), row(values[place] > 1 ? values[place] : 1, 1, top));
        fputs("\"/>\n", out);
        for (size_t place = 0; place < plot->place_count; place++)
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"><title>%.3f</title></circle>\n",
                    column(plot, place), row(values[place] > 1 ? values[place] : 1, 1, top), colour, values[place]);
        double y = TOP + 20 * (double)series;
        fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"2\"/>\n",
                WIDTH - RIGHT + 14, y + 6, WIDTH - RIGHT + 34, y + 6, colour);
        label(out, WIDTH - RIGHT + 40, y + 10, "start", "", plot->names[series]);
    }
    fputs("</svg>\n", out);
}

void rf_plot_shares(const struct rf_plot *plot, FILE *out)
{
    double width = (WIDTH - LEFT - RIGHT) / (double)(plot->place_count ? plot->place_count : 1) * 0.6;
    frame(plot, out, 0, 1, 0.2, true);
    for (size_t place = 0; place < plot->place_count; place++) {
        double below = 0;
        for (size_t series = 0; series < plot->series_count; series++) {
            double value = plot->values[series * plot->place_count + place], y = row(below + value, 0, 1);
            fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%.4f</title></rect>\n",
                    column(plot, place) - width / 2, y, width, row(below, 0, 1) - y, colours[series % COLOURS], value);
            below += value;
        }
    }
    for (size_t series = 0; series < plot->series_count; series++) {
        double y = TOP + 20 * (double)series;
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", WIDTH - RIGHT + 16, y,
                colours[series % COLOURS]);
        label(out, WIDTH - RIGHT + 36, y + 11, "start", "", plot->names[series]);
    }
    fputs("</svg>\n", out);
}
